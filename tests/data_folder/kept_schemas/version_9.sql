BEGIN TRANSACTION;
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 110 CHECK (mark = 110),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    body TEXT NOT NULL,  -- JSON; the bytes of files are in blobs, by their digests
    UNIQUE (conversation, id)
);
INSERT INTO "checkpoints" VALUES(6,110,5,'663df37c99ff47039dca01a097deb0e8','{"id":"663df37c99ff47039dca01a097deb0e8","conversation_id":"20ccc47b0e2f4ef5ab7e76b39b80d499","tool_use_id":"w1","message_id":"4cd7b780ebb04c8ca1b69b38028c5226","workspace":"/tmp/garden","created_at":"2026-11-26T05:14:12.493688Z","files":[{"path":"rose.txt","before":{},"after":{"digest":"810f4b215733781414d11624d9354bfe046b3a13a576f630c5d35211e270659a","mode":420}}],"tool":"write_file @ /tmp/garden","succeeded":true}');
INSERT INTO "checkpoints" VALUES(7,110,5,'98dbd84ebc8e48b7a90bf0e34a6cb73d','{"id":"98dbd84ebc8e48b7a90bf0e34a6cb73d","conversation_id":"20ccc47b0e2f4ef5ab7e76b39b80d499","tool_use_id":"w2","message_id":"4cd7b780ebb04c8ca1b69b38028c5226","workspace":"/tmp/garden","created_at":"2026-11-26T05:14:12.500824Z","files":[{"path":"beds/tulip.txt","before":{},"after":{"digest":"810f4b215733781414d11624d9354bfe046b3a13a576f630c5d35211e270659a","mode":420}}],"new_folders":["beds"],"tool":"write_file @ /tmp/garden","succeeded":true}');
INSERT INTO "checkpoints" VALUES(8,110,5,'3d8b1ef3343b494f92f12908e0e546d8','{"id":"3d8b1ef3343b494f92f12908e0e546d8","conversation_id":"20ccc47b0e2f4ef5ab7e76b39b80d499","tool_use_id":"d1","message_id":"5c0d5e0212944935bf6a10d493c2c3fa","workspace":"/tmp/garden","created_at":"2026-11-26T05:14:12.517504Z","files":[{"path":"rose.txt","before":{"digest":"810f4b215733781414d11624d9354bfe046b3a13a576f630c5d35211e270659a","mode":420},"after":{},"owner":[0,0]}],"tool":"delete_file @ /tmp/garden","succeeded":true}');
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 101 CHECK (mark = 101),
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    title_is_automatic INTEGER NOT NULL,
    created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
    updated_at INTEGER NOT NULL,
    endpoint_id TEXT,
    model TEXT,
    workspace TEXT,
    head INTEGER,  -- the message that ends the branch in view
    message_count INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER
, reasoning TEXT, state TEXT, parameters TEXT, origin TEXT, folder INTEGER, pinned_at INTEGER, archived_at INTEGER);
INSERT INTO "conversations" VALUES(5,101,'20ccc47b0e2f4ef5ab7e76b39b80d499','Rules and modes',0,1795670052474897,1795670052724515,'home','demo','/tmp/garden',86,13,NULL,'{"type":"effort","level":"high"}','{"mode":"careful","own_mode":{"name":"careful","title":"Careful","mutating":"deny","addendum":"Change nothing.","rules":[{"id":"mode-rule","effect":"allow","tool":"read_file","also":[],"pattern":null,"scope":"conversation","conversation_id":null,"workspace":null,"answers":[],"trusts":false,"origin":"a mode","created_at":"2200-01-01T00:00:00Z","expires_at":null,"last_used_at":null}]},"is_mode_gone":false,"policies":[{"id":"kind","text":"Be kind.","scope":"persistent","precedence":5,"trigger":{"mode":null,"tool":null,"word":"rose"}}],"queue":[],"stopped_run":null,"outside":[{"kind":"web","name":"example.org","id":""}],"trusted":[{"kind":"mcp","name":"Tools","id":"tools"}]}',NULL,NULL,2,1795670052724515,NULL);
INSERT INTO "conversations" VALUES(6,101,'8a5e78df8cc546ffafc3ca2a047b290d','How many?',1,1795670052733861,1795670052752938,'home','demo','/tmp/garden',90,4,NULL,'{"type":"effort","level":"high"}',NULL,'{"temperature":0.5,"top_p":null,"max_tokens":4000,"system_prompt":"Speak of plants."}','{"program":"codex","id":"c-7"}',NULL,NULL,NULL);
INSERT INTO "conversations" VALUES(8,101,'fb7c136540ae4f1ebccb52119412f00d','In the trash',0,1795670052826349,1795670052829952,'home','demo','/tmp/garden',107,2,7258118400000000,'{"type":"effort","level":"high"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "conversations" VALUES(10,101,'5a9b1833804341578325779633cb6356','A call runs',0,1795670052925517,1795670052930860,'home','demo','/tmp/garden',111,2,NULL,'{"type":"effort","level":"high"}',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "conversations" VALUES(11,101,'21cbaef4f94e4650b88d5614e5847a09','An answer breaks off',0,1795670052950058,1795670052951932,'home','demo','/tmp/garden',112,1,NULL,'{"type":"effort","level":"high"}','{"mode":"default","own_mode":null,"is_mode_gone":false,"policies":[],"queue":[{"message":{"id":"90ae8299e327406d996687a1ceec58f6","role":"user","blocks":[{"type":"text","text":"Look here too.","citations":[],"provider":"","metadata":{}},{"type":"image","source":{"type":"stored","digest":"7c6573c20dd536767abda9d1dd6ec09266e8680535dea902cd9f20aa92e58b99","media_type":"image/png","size":78,"width":12,"height":8},"detail":"auto","name":"pond.png"}],"state":"complete","created_at":"2026-11-26T05:14:12.953656Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null},"when":"soon"},{"message":{"id":"a8dcd4abd0d0418b9085390915fddd43","role":"user","blocks":[{"type":"text","text":"Then rest.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.965676Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null},"when":"idle"}],"stopped_run":null,"outside":[],"trusted":[]}',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE drafts (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 105 CHECK (mark = 105),
    body TEXT NOT NULL
);
INSERT INTO "drafts" VALUES(0,105,'{"text":"Dear garden","images":[{"type":"image","source":{"type":"stored","digest":"fd848f0649f29a3691f68240d07733bc110aab4f81beaee11b1ab1c85ce5a94a","media_type":"image/png","size":76,"width":12,"height":8},"detail":"auto","name":"rose.png"}],"resources":[{"server":"Tools","title":"Plan","uri":"plan://1","text":"Dig here.","server_id":"tools"}],"outside":[{"kind":"mcp","name":"Tools","id":"tools"}],"pasted":["long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "]}');
INSERT INTO "drafts" VALUES(6,105,'{"text":"Not sent yet","images":[],"resources":[],"outside":[],"pasted":[]}');
CREATE TABLE folders (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 113 CHECK (mark = 113),
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    colour TEXT NOT NULL,
    parent INTEGER  -- the folder that it is in, or NULL at the top
);
INSERT INTO "folders" VALUES(1,113,'f1','Work','blue',NULL);
INSERT INTO "folders" VALUES(2,113,'f2','Import','grey',1);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 104 CHECK (mark = 104),
    parent_run_id TEXT,
    turn_id TEXT,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    event TEXT NOT NULL
);
INSERT INTO "journal" VALUES(146028888065,104,NULL,NULL,'2026-11-26T05:14:12.824980+00:00','run_started','{"message_id":"73c1ff670ed246e2902b62c0b6f6257c","resumed":false,"agent":"","call_id":"","type":"run_started"}');
INSERT INTO "journal" VALUES(146028888066,104,NULL,'479688b439e44755bd9341338609cf42','2026-11-26T05:14:12.827735+00:00','turn_started','{"turn_id":"479688b439e44755bd9341338609cf42","message_id":"68e1b87b89cd468c94535724c0d3bb3e","model":"demo","type":"turn_started"}');
INSERT INTO "journal" VALUES(146028888068,104,NULL,'479688b439e44755bd9341338609cf42','2026-11-26T05:14:12.828186+00:00','message_delta','{"stop_reason":"end_turn","raw":null,"details":null,"type":"message_delta"}');
INSERT INTO "journal" VALUES(146028888069,104,NULL,'479688b439e44755bd9341338609cf42','2026-11-26T05:14:12.828662+00:00','done','{"type":"done"}');
INSERT INTO "journal" VALUES(146028888070,104,NULL,'479688b439e44755bd9341338609cf42','2026-11-26T05:14:12.830615+00:00','run_finished','{"reason":"completed","type":"run_finished"}');
INSERT INTO "journal" VALUES(154618822657,104,NULL,NULL,'2026-11-26T05:14:12.924541+00:00','run_started','{"message_id":"61872f7d7dcd4d83b0a6cfe58b5a40b4","resumed":false,"agent":"","call_id":"","type":"run_started"}');
INSERT INTO "journal" VALUES(154618822658,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.929536+00:00','turn_started','{"turn_id":"68fa0f19e41c4563acceca54cf660628","message_id":"6072f1bbd64c4c4c83b1db507d72db22","model":"demo","type":"turn_started"}');
INSERT INTO "journal" VALUES(154618822659,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.930069+00:00','tool_use','{"type":"tool_use","id":"r9","name":"run_command","input":{"command":"sleep 60 && touch well.txt"},"malformed":null,"provider":"","metadata":{}}');
INSERT INTO "journal" VALUES(154618822660,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.930135+00:00','message_delta','{"stop_reason":"tool_use","raw":null,"details":null,"type":"message_delta"}');
INSERT INTO "journal" VALUES(154618822661,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.930184+00:00','done','{"type":"done"}');
INSERT INTO "journal" VALUES(154618822662,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.931316+00:00','tool_call_pending','{"id":"r9","name":"run_command","input":{"command":"sleep 60 && touch well.txt"},"tool_class":"mutating","agent_path":[],"type":"tool_call_pending"}');
INSERT INTO "journal" VALUES(154618822663,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.936755+00:00','approval_requested','{"approval_id":"624b960f849e463eaa497659a04832e4","tool_use_id":"r9","digest":"f4d49d6d32fb29789187b20b716ea95eef64819a03bde6463960472d4216bc33","agent_path":[],"reason":"","effective_input":null,"type":"approval_requested"}');
INSERT INTO "journal" VALUES(154618822664,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.945082+00:00','approval_resolved','{"approval_id":"624b960f849e463eaa497659a04832e4","tool_use_id":"r9","decision":"allow_once","by":"person","effective_input":null,"message":"","digest":"f4d49d6d32fb29789187b20b716ea95eef64819a03bde6463960472d4216bc33","type":"approval_resolved"}');
INSERT INTO "journal" VALUES(154618822665,104,NULL,'68fa0f19e41c4563acceca54cf660628','2026-11-26T05:14:12.946872+00:00','tool_started','{"id":"r9","input":{"command":"sleep 60 && touch well.txt"},"by":"person","rule_id":null,"type":"tool_started"}');
INSERT INTO "journal" VALUES(158913789953,104,NULL,NULL,'2026-11-26T05:14:12.948146+00:00','run_started','{"message_id":"3ae7b74e64ca47dc83a2d7b573dfd5a0","resumed":false,"agent":"","call_id":"","type":"run_started"}');
INSERT INTO "journal" VALUES(158913789954,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.952729+00:00','turn_started','{"turn_id":"7b4a95a1a5f64323bd515b61db41cc46","message_id":"44652a616ba14338aeed908ca98f9df0","model":"demo","type":"turn_started"}');
INSERT INTO "journal" VALUES(158913789955,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.953178+00:00','thinking_delta','{"text":"Let me think.","part":0,"type":"thinking_delta"}');
INSERT INTO "journal" VALUES(158913789956,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.953265+00:00','thinking_block','{"text":"Let me think.","provider":"home","metadata":{"seal":"abc"},"part":0,"type":"thinking_block"}');
INSERT INTO "journal" VALUES(158913789957,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.953299+00:00','content_delta','{"text":"Half of an ","phase":null,"part":0,"type":"content_delta"}');
INSERT INTO "journal" VALUES(158913789958,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.953822+00:00','user_message_queued','{"message_id":"90ae8299e327406d996687a1ceec58f6","type":"user_message_queued"}');
INSERT INTO "journal" VALUES(158913789959,104,NULL,'7b4a95a1a5f64323bd515b61db41cc46','2026-11-26T05:14:12.965803+00:00','user_message_queued','{"message_id":"a8dcd4abd0d0418b9085390915fddd43","type":"user_message_queued"}');
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 102 CHECK (mark = 102),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent INTEGER,  -- always a smaller number
    position INTEGER NOT NULL,  -- 1 for the first of a branch
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (conversation, id)
);
INSERT INTO "messages" VALUES(74,102,5,'14e80ab541d34b81a5006fedec9b763c',NULL,1,'user','complete','2026-11-26T05:14:12.466174+00:00','{"id":"14e80ab541d34b81a5006fedec9b763c","role":"user","blocks":[{"type":"text","text":"Plant something.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.466174Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(75,102,5,'4cd7b780ebb04c8ca1b69b38028c5226',74,2,'assistant','complete','2026-11-26T05:14:12.477169+00:00','{"id":"4cd7b780ebb04c8ca1b69b38028c5226","role":"assistant","blocks":[{"type":"text","text":"I plant. ","citations":[],"provider":"","metadata":{}},{"type":"tool_use","id":"w1","name":"write_file","input":{"path":"rose.txt","content":"tulips\n"},"malformed":null,"provider":"","metadata":{}},{"type":"tool_use","id":"w2","name":"write_file","input":{"path":"beds/tulip.txt","content":"tulips\n"},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.477169Z","model":"demo","usage":{"input_tokens":900,"output_tokens":80,"cache_read_tokens":500,"cache_write_tokens":null,"reasoning_tokens":20,"total_tokens":null,"cost":0.02},"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(76,102,5,'603d908422ef442593aa8d068d4f1b8b',75,3,'tool','complete','2026-11-26T05:14:12.506553+00:00','{"id":"603d908422ef442593aa8d068d4f1b8b","role":"tool","blocks":[{"type":"tool_result","tool_use_id":"w1","content":[{"type":"text","text":"Created rose.txt (7 bytes).","citations":[],"provider":"","metadata":{}}],"outcome":"succeeded","ran_with":null},{"type":"tool_result","tool_use_id":"w2","content":[{"type":"text","text":"Created beds/tulip.txt (7 bytes).","citations":[],"provider":"","metadata":{}}],"outcome":"succeeded","ran_with":null}],"state":"complete","created_at":"2026-11-26T05:14:12.506553Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(77,102,5,'5c0d5e0212944935bf6a10d493c2c3fa',76,4,'assistant','complete','2026-11-26T05:14:12.508303+00:00','{"id":"5c0d5e0212944935bf6a10d493c2c3fa","role":"assistant","blocks":[{"type":"tool_use","id":"d1","name":"delete_file","input":{"path":"rose.txt"},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.508303Z","model":"demo","usage":null,"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(78,102,5,'e2f5da722b9e4046abbc3615645d9303',77,5,'tool','complete','2026-11-26T05:14:12.524207+00:00','{"id":"e2f5da722b9e4046abbc3615645d9303","role":"tool","blocks":[{"type":"tool_result","tool_use_id":"d1","content":[{"type":"text","text":"Deleted rose.txt.","citations":[],"provider":"","metadata":{}}],"outcome":"succeeded","ran_with":null}],"state":"complete","created_at":"2026-11-26T05:14:12.524207Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(79,102,5,'04786cee097743759b47029ae23e308e',78,6,'assistant','complete','2026-11-26T05:14:12.528886+00:00','{"id":"04786cee097743759b47029ae23e308e","role":"assistant","blocks":[{"type":"server_step","provider":"home","name":"search","text":"tulips","raw":{"n":1}},{"type":"text","text":"Done.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.528886Z","model":"demo","usage":{"input_tokens":900,"output_tokens":80,"cache_read_tokens":500,"cache_write_tokens":null,"reasoning_tokens":20,"total_tokens":null,"cost":0.02},"stop_reason":"end_turn","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(80,102,5,'b4a06361c1fd4a4694f41188bfa8629b',79,7,'user','complete','2026-11-26T05:14:12.532357+00:00','{"id":"b4a06361c1fd4a4694f41188bfa8629b","role":"user","blocks":[{"type":"text","text":"Now dig.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.532357Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(81,102,5,'571856a199d44425a9656124763a6a5e',80,8,'assistant','complete','2026-11-26T05:14:12.535422+00:00','{"id":"571856a199d44425a9656124763a6a5e","role":"assistant","blocks":[{"type":"tool_use","id":"w3","name":"run_command","input":{"command":"make hole"},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.535422Z","model":"demo","usage":null,"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(82,102,5,'2e2f23fe37884b1fba6bd60b2c45fed3',81,9,'tool','complete','2026-11-26T05:14:12.703801+00:00','{"id":"2e2f23fe37884b1fba6bd60b2c45fed3","role":"tool","blocks":[{"type":"tool_result","tool_use_id":"w3","content":[{"type":"text","text":"The person denied this call.","citations":[],"provider":"","metadata":{}}],"outcome":"denied","ran_with":null}],"state":"complete","created_at":"2026-11-26T05:14:12.703801Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(83,102,5,'eadb1d2b25504d39a31320883a8f5c85',82,10,'user','complete','2026-11-26T05:14:12.710493+00:00','{"id":"eadb1d2b25504d39a31320883a8f5c85","role":"user","blocks":[{"type":"text","text":"And water.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.710493Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(84,102,5,'4381d66e4418463eb952bf58fec8b527',83,11,'assistant','complete','2026-11-26T05:14:12.715695+00:00','{"id":"4381d66e4418463eb952bf58fec8b527","role":"assistant","blocks":[{"type":"tool_use","id":"w4","name":"write_file","input":{"path":"water.txt","content":"tulips\n"},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.715695Z","model":"demo","usage":null,"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(85,102,5,'8968e7b2fef84cf7915e20689e85b870',84,12,'tool','complete','2026-11-26T05:14:12.722123+00:00','{"id":"8968e7b2fef84cf7915e20689e85b870","role":"tool","blocks":[{"type":"tool_result","tool_use_id":"w4","content":[{"type":"text","text":"The mode “Careful” denies calls that change something.","citations":[],"provider":"","metadata":{}}],"outcome":"denied","ran_with":null}],"state":"complete","created_at":"2026-11-26T05:14:12.722123Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(86,102,5,'e65001449edc404b93237466316cfa08',85,13,'assistant','complete','2026-11-26T05:14:12.724102+00:00','{"id":"e65001449edc404b93237466316cfa08","role":"assistant","blocks":[{"type":"text","text":"It is denied.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.724102Z","model":"demo","usage":null,"stop_reason":"end_turn","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(87,102,6,'72d7bc5e976c4b80a4ba5cd2b8408ab8',NULL,1,'user','complete','2026-11-26T05:14:12.732378+00:00','{"id":"72d7bc5e976c4b80a4ba5cd2b8408ab8","role":"user","blocks":[{"type":"text","text":"How many?","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.732378Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(88,102,6,'8d086a74bebb45ca8840129525ed4b2c',87,2,'assistant','complete','2026-11-26T05:14:12.737795+00:00','{"id":"8d086a74bebb45ca8840129525ed4b2c","role":"assistant","blocks":[{"type":"tool_use","id":"g1","name":"gardener","input":{"task":"Count the beds."},"malformed":null,"provider":"","metadata":{}},{"type":"tool_use","id":"q1","name":"ask_user","input":{"question":"Which?","choices":["A"]},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.737795Z","model":"demo","usage":null,"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(89,102,6,'0991a8792a104b93b301616efc2ec98b',88,3,'tool','complete','2026-11-26T05:14:12.750652+00:00','{"id":"0991a8792a104b93b301616efc2ec98b","role":"tool","blocks":[{"type":"tool_result","tool_use_id":"g1","content":[{"type":"text","text":"42 beds.","citations":[],"provider":"","metadata":{}}],"outcome":"succeeded","ran_with":null},{"type":"tool_result","tool_use_id":"q1","content":[{"type":"text","text":"The person answered:\nA","citations":[],"provider":"","metadata":{}}],"outcome":"succeeded","ran_with":null}],"state":"complete","created_at":"2026-11-26T05:14:12.750652Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(90,102,6,'f4d27e28dc754da8a0b809e13041f605',89,4,'assistant','complete','2026-11-26T05:14:12.752521+00:00','{"id":"f4d27e28dc754da8a0b809e13041f605","role":"assistant","blocks":[{"type":"text","text":"There are 42.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.752521Z","model":"demo","usage":null,"stop_reason":"end_turn","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(106,102,8,'73c1ff670ed246e2902b62c0b6f6257c',NULL,1,'user','complete','2026-11-26T05:14:12.824558+00:00','{"id":"73c1ff670ed246e2902b62c0b6f6257c","role":"user","blocks":[{"type":"text","text":"Away with it.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.824558Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(107,102,8,'68e1b87b89cd468c94535724c0d3bb3e',106,2,'assistant','complete','2026-11-26T05:14:12.828800+00:00','{"id":"68e1b87b89cd468c94535724c0d3bb3e","role":"assistant","blocks":[{"type":"text","text":"Gone.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.828800Z","model":"demo","usage":null,"stop_reason":"end_turn","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(110,102,10,'61872f7d7dcd4d83b0a6cfe58b5a40b4',NULL,1,'user','complete','2026-11-26T05:14:12.924000+00:00','{"id":"61872f7d7dcd4d83b0a6cfe58b5a40b4","role":"user","blocks":[{"type":"text","text":"Wait a minute.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.924000Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(111,102,10,'6072f1bbd64c4c4c83b1db507d72db22',110,2,'assistant','complete','2026-11-26T05:14:12.930299+00:00','{"id":"6072f1bbd64c4c4c83b1db507d72db22","role":"assistant","blocks":[{"type":"tool_use","id":"r9","name":"run_command","input":{"command":"sleep 60 && touch well.txt"},"malformed":null,"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.930299Z","model":"demo","usage":null,"stop_reason":"tool_use","stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(112,102,11,'3ae7b74e64ca47dc83a2d7b573dfd5a0',NULL,1,'user','complete','2026-11-26T05:14:12.947223+00:00','{"id":"3ae7b74e64ca47dc83a2d7b573dfd5a0","role":"user","blocks":[{"type":"text","text":"Tell me.","citations":[],"provider":"","metadata":{}}],"state":"complete","created_at":"2026-11-26T05:14:12.947223Z","model":null,"usage":null,"stop_reason":null,"stop_details":null,"origin":null,"adjustments":[],"injected_by":null}');
INSERT INTO "messages" VALUES(113,102,6,'ffffffffffffffffffffffffffffffff',89,4,'assistant','complete','2026-11-26T05:14:12.752521+00:00','{"id": "ffffffffffffffffffffffffffffffff", "role": "assistant", "blocks": [{"type": "text", "text": "Another version of the answer.", "citations": [], "provider": "", "metadata": {}}], "state": "complete", "created_at": "2026-11-26T05:14:12.752521Z", "model": "demo", "usage": null, "stop_reason": "end_turn", "stop_details": null, "origin": null, "adjustments": [], "injected_by": null}');
CREATE TABLE picture_uses (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 107 CHECK (mark = 107),
    conversation INTEGER NOT NULL,
    digest TEXT NOT NULL,
    UNIQUE (conversation, digest)
);
INSERT INTO "picture_uses" VALUES(5,107,0,'fd848f0649f29a3691f68240d07733bc110aab4f81beaee11b1ab1c85ce5a94a');
INSERT INTO "picture_uses" VALUES(6,107,11,'7c6573c20dd536767abda9d1dd6ec09266e8680535dea902cd9f20aa92e58b99');
CREATE TABLE pictures (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 106 CHECK (mark = 106),
    digest TEXT NOT NULL UNIQUE,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    width INTEGER,
    height INTEGER
);
INSERT INTO "pictures" VALUES(2,106,'fd848f0649f29a3691f68240d07733bc110aab4f81beaee11b1ab1c85ce5a94a','image/png',76,12,8);
INSERT INTO "pictures" VALUES(3,106,'7c6573c20dd536767abda9d1dd6ec09266e8680535dea902cd9f20aa92e58b99','image/png',78,12,8);
CREATE TABLE rules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 108 CHECK (mark = 108),
    id TEXT NOT NULL UNIQUE,
    conversation TEXT,
    body TEXT NOT NULL,
    last_used_at TEXT
);
INSERT INTO "rules" VALUES(1,108,'rule-0',NULL,'{"id":"rule-0","effect":"allow","tool":"run_command","also":[],"pattern":{"type":"command","words":["npm","install","left-pad"],"exact":false,"folder":"."},"scope":"workspace","conversation_id":null,"workspace":"/tmp/garden","answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.465788Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(2,108,'rule-1',NULL,'{"id":"rule-1","effect":"deny","tool":"run_command","also":[],"pattern":{"type":"command","words":["curl"],"exact":false,"folder":"."},"scope":"always","conversation_id":null,"workspace":null,"answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.465854Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(3,108,'rule-2',NULL,'{"id":"rule-2","effect":"allow","tool":"run_command","also":[],"pattern":{"type":"commands","title":"tests","beginnings":[["pytest"],["tox"]],"folder":"."},"scope":"always","conversation_id":null,"workspace":null,"answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.465904Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(4,108,'rule-3',NULL,'{"id":"rule-3","effect":"allow","tool":"write_file","also":[],"pattern":{"type":"path","prefix":"/tmp/garden/beds"},"scope":"workspace","conversation_id":null,"workspace":"/tmp/garden","answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.465926Z","expires_at":null,"last_used_at":null}','2026-11-26T05:14:12.504432+00:00');
INSERT INTO "rules" VALUES(5,108,'rule-4',NULL,'{"id":"rule-4","effect":"deny","tool":"write_file","also":[],"pattern":{"type":"path","prefix":"/tmp/garden/beds/locked"},"scope":"always","conversation_id":null,"workspace":null,"answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.465950Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(6,108,'rule-5','20ccc47b0e2f4ef5ab7e76b39b80d499','{"id":"rule-5","effect":"allow","tool":"fetch_page","also":[],"pattern":{"type":"host","host":"*.example.org"},"scope":"conversation","conversation_id":"20ccc47b0e2f4ef5ab7e76b39b80d499","workspace":null,"answers":[],"trusts":true,"origin":"you","created_at":"2026-11-26T05:14:12.466020Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(7,108,'rule-6',NULL,'{"id":"rule-6","effect":"ask","tool":"read_file","also":[],"pattern":{"type":"path","prefix":"/tmp/garden/diary"},"scope":"workspace","conversation_id":null,"workspace":"/tmp/garden","answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.466046Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(8,108,'627fe21105e646d8830059c6d1575bf6',NULL,'{"id":"627fe21105e646d8830059c6d1575bf6","effect":"allow","tool":"write_file @ /tmp/garden","also":["edit_file @ /tmp/garden"],"pattern":{"type":"path","prefix":"/tmp/garden"},"scope":"workspace","conversation_id":null,"workspace":"/tmp/garden","answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.486482Z","expires_at":null,"last_used_at":null}',NULL);
INSERT INTO "rules" VALUES(9,108,'68a0c98224bc44239efafe39b17cfbb3','20ccc47b0e2f4ef5ab7e76b39b80d499','{"id":"68a0c98224bc44239efafe39b17cfbb3","effect":"allow","tool":"delete_file @ /tmp/garden","also":[],"pattern":null,"scope":"conversation","conversation_id":"20ccc47b0e2f4ef5ab7e76b39b80d499","workspace":null,"answers":[],"trusts":false,"origin":"you","created_at":"2026-11-26T05:14:12.514774Z","expires_at":null,"last_used_at":null}',NULL);
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 103 CHECK (mark = 103),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0,
    UNIQUE (conversation, id)
);
INSERT INTO "runs" VALUES(34,103,8,'a7b1634bdcf74c29ac85a416abe2b4aa',1);
INSERT INTO "runs" VALUES(36,103,10,'624029bfad6840868404f192777b2d5d',0);
INSERT INTO "runs" VALUES(37,103,11,'3f6a6c0f97354a759ea477e12a60055c',0);
CREATE TABLE schedule_runs (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 117 CHECK (mark = 117),
    schedule TEXT NOT NULL,
    slot TEXT NOT NULL,  -- the time that it is for
    conversation TEXT NOT NULL,
    message TEXT NOT NULL,  -- the id of its prompt, chosen before that is stored
    state TEXT NOT NULL,
    result TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    UNIQUE (schedule, slot)
);
INSERT INTO "schedule_runs" VALUES(1,117,'s1','2026-11-23T08:30:00','20ccc47b0e2f4ef5ab7e76b39b80d499','m1','ended','completed',1763886600000000);
CREATE TABLE schedules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 116 CHECK (mark = 116),
    id TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checked_until INTEGER NOT NULL,  -- microseconds since 1970, UTC
    conversation TEXT  -- the id of the one that all runs go on in, or NULL
);
INSERT INTO "schedules" VALUES(1,116,'s1','{"id":"s1","title":"What is to be done today","prompt":"Look into the list.","timing":{"type":"weekly","days":[0,4],"at":"08:30:00"},"workspace":null,"endpoint_id":null,"model":null,"mode":"default","missed":"run_once","target":"new","is_on":true}',1,1763886600000000,NULL);
CREATE TABLE search_changes (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 111 CHECK (mark = 111),
    kind TEXT NOT NULL,
    subject INTEGER NOT NULL  -- the number of the message or the conversation
);
INSERT INTO "search_changes" VALUES(1,111,'message',90);
CREATE TABLE search_state (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    mark INTEGER NOT NULL DEFAULT 112 CHECK (mark = 112),
    token TEXT NOT NULL
);
INSERT INTO "search_state" VALUES(1,112,'0123456789abcdef0123456789abcdef');
CREATE TABLE tags (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 114 CHECK (mark = 114),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    name TEXT NOT NULL COLLATE NOCASE,
    UNIQUE (conversation, name)
);
INSERT INTO "tags" VALUES(1,114,5,'later');
CREATE TABLE usage (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 115 CHECK (mark = 115),
    day TEXT NOT NULL,  -- the person's local day, such as 2026-03-29
    model TEXT NOT NULL,
    project TEXT NOT NULL,  -- the folder of work, or '' without one
    answers INTEGER NOT NULL DEFAULT 0,
    uncounted INTEGER NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    cost_nanos INTEGER NOT NULL DEFAULT 0,
    saved_nanos INTEGER NOT NULL DEFAULT 0,
    UNIQUE (day, model, project)
);
INSERT INTO "usage" VALUES(1,115,'2026-11-26','demo','/tmp/garden',8,6,6,1960,1800,160,1000,0,40,40000000,0);
CREATE INDEX conversations_by_time ON conversations (deleted_at, updated_at DESC);
CREATE INDEX runs_open ON runs (conversation) WHERE finished = 0;
CREATE INDEX picture_uses_by_digest ON picture_uses (digest);
CREATE INDEX rules_by_conversation ON rules (conversation);
CREATE INDEX messages_by_parent ON messages (conversation, parent);
CREATE TRIGGER search_message_added AFTER INSERT ON messages WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', new.number);
END;
CREATE TRIGGER search_message_changed AFTER UPDATE OF conversation, id, role, created_at, body ON messages
WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', new.number);
END;
CREATE TRIGGER search_message_deleted AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM search_state) AND EXISTS (SELECT 1 FROM conversations WHERE number = old.conversation)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('message', old.number);
END;
CREATE TRIGGER search_conversation_added AFTER INSERT ON conversations WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation', new.number);
END;
CREATE TRIGGER search_conversation_changed AFTER UPDATE OF id, title, model, workspace, deleted_at ON conversations
WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation', new.number);
END;
CREATE TRIGGER search_conversation_deleted AFTER DELETE ON conversations WHEN EXISTS (SELECT 1 FROM search_state)
BEGIN
    INSERT INTO search_changes (kind, subject) VALUES ('conversation_deleted', old.number);
END;
CREATE INDEX folders_by_parent ON folders (parent);
CREATE INDEX tags_by_name ON tags (name, conversation);
CREATE INDEX conversations_in_folder ON conversations (folder, updated_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NULL;
CREATE INDEX conversations_pinned ON conversations (folder, pinned_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NOT NULL;
CREATE INDEX conversations_archived ON conversations (updated_at)
    WHERE deleted_at IS NULL AND archived_at IS NOT NULL;
CREATE INDEX conversations_by_folder ON conversations (folder) WHERE folder IS NOT NULL;
CREATE INDEX schedule_runs_claimed ON schedule_runs (message) WHERE state = 'claimed';
CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule, number);
CREATE TRIGGER schedule_prompt_stored AFTER INSERT ON messages
WHEN EXISTS (SELECT 1 FROM schedule_runs WHERE message = new.id AND state = 'claimed')
BEGIN
    UPDATE schedule_runs SET state = 'started' WHERE message = new.id AND state = 'claimed';
END;
COMMIT;
PRAGMA user_version=9;

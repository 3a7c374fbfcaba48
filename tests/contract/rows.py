"""What the runtime promises, row by row. Each has tests in this folder that begin with its name.

`test_tool_use__empty_arguments_are_an_object` belongs to the row `tool_use`. `coverage.py` writes
docs/contract-coverage.md from both.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One promise. `name` is how the names of its tests begin, after `test_`."""

    name: str
    promise: str


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    rows: tuple[Row, ...]


def _rows(text: str) -> tuple[Row, ...]:
    lines = [line.strip() for line in text.strip().splitlines()]
    return tuple(Row(*(part.strip() for part in line.split("|", 1))) for line in lines)


DATA = _rows(
    """
    role | system, user, assistant and tool
    content_blocks | text, tool use and tool result; a result holds text, JSON and images, and says how the call ended
    image | an address or base64; four formats, told by content and never by name; low, high and auto
    thinking | the text is what the server chose to show; the metadata goes back byte for byte
    unknown_block | what this version does not know is kept and shown, never dropped
    message | makers for text, blocks, images by address, base64 and file; complete or interrupted
    usage | unknown is not 0; the larger number within a turn, the sum across turns
    stop_reason | the provider's reasons, cancelled by the runtime only, unknown words kept
    provider_config | None is not sent; reasoning off, by effort, or by a number of tokens
    provider_state | totals that can be read while a stream runs
    agent_options | keyword arguments, a builder, the environment, presets for local servers
    """
)
EVENTS = _rows(
    """
    envelope | every event has its run, its turn and a number without gaps
    provider_events | text, thinking, whole calls, fragments for display only, stop reason, usage, done
    run_started | a run begins on a prompt or on the history
    turn_started | each question to the model has its own turn
    mode_changed | the mode is another one, and by whose authority
    mode_change_requested | the agent asks for a mode
    continuation_injected | a guard made the run go on
    guard_aborted | a guard ended the run, failed, or used up its iterations
    policy_installed | a prompt policy is in force
    policy_removed | a prompt policy is gone
    policy_applied | these policies shaped this turn
    tool_call_pending | the model's turn ended with this call
    approval_requested | a person must decide
    approval_resolved | decided, and by whom
    tool_started | journalled before the effect
    tool_progress | live output
    tool_finished | the call has its result
    tool_results_received | all calls of a turn are answered
    user_message_queued | a message waits
    user_message_delivered | a message that waited reached the history
    user_message_returned | a message was handed back
    answer_awaited | nothing of the answer has come for so long
    retry_scheduled | the same question again, after a while
    context_compacted | older messages are summarised for the model
    checkpoint_created | files were saved before a call changes them
    checkpoint_restored | files were put back
    limit_reached | which limit, in words
    doom_loop_suspected | the third identical call in a row
    question_asked | the agent asks the person
    question_answered | the person answered, or time ran out
    cost_updated | what the run has cost so far
    error_occurred | something failed, and what to do about it
    run_finished | once, and last
    order_of_one_call | use, end of the turn, pending, gates, approval, start, finish
    errors_before_and_within | before the stream: raised; within: an item; afterwards the session is usable
    """
)
FACES = _rows(
    """
    query | one stateless question, an iterator of blocks
    client | send, receive, stream, complete, continue, results, interrupts, history, options, tools
    run_time_control | mode, policies, guards, rules, steering, stopping, approvals and questions, at any moment
    manual_mode | the caller runs the calls; results are taken from the moment a call was handed out
    automatic_mode | text and thinking stream while tools run
    provider | chat, stream, complete, chat loop, caches, listings, counts; typed errors for what a server lacks
    chat_loop_handle | steps, results with exact ids once, cancel closes the connection
    agent_response | two phases, with tools still offered in the follow-up
    collecting | text, whole responses, assembled calls
    """
)
SEMANTICS = _rows(
    """
    hooks | three kinds, all run in order, the strictest wins, a raising one denies
    tool | schema from a model, from type hints or given; class, effects, limits, preview, undo
    schedule | results in call order, reads in parallel, changes one at a time, no pool shared with parents
    gates | name, registry, hooks, rules, mode, approval, and once more before the start
    rules | deny over ask over allow; patterns, scopes, expiry; each part of a chained command by itself
    approval | six decisions, bound to a digest, all cards together, the first decision wins
    modes | the person's at once, the agent's one turn after it was announced, never wider
    prompt_policies | scopes, precedence, triggers; text, never authority
    continuation_guards | continue, stop, abort; bounded
    steering | soon or when idle; edited, reordered, deleted; delivered once or handed back
    sent_prompt | it is in the history, whenever Stop comes, and its run ends once
    interrupt | a tool, a turn or the session; at any moment; exactly one end
    ask_the_user | choices and free text, root agent only, with a timeout
    delegation | a specialist is a tool and a run of the same engine, three deep at most
    retry | before any content only, with the server's hint honoured; not after our own time-out, which may be billed
    thinking_replay | own blocks byte for byte, foreign ones never
    prompt_caching | savings are visible in the usage
    compaction | by real usage, groups stay whole, everything stays on disk
    doom_loop | the third identical call asks the person
    limits | turns, rounds, tokens, cost, time; open calls are closed, and one can go on
    one_owner | one writer for each conversation, across processes; only a run whose owner is gone is recovered
    crash | what waited is shown again, what was approved runs after a look at its digest, what had started is unknown
    """
)
NEVER = _rows(
    """
    never_lost_on_the_wire | calls, results, images and thinking reach the server
    never_a_lost_stop | a continuation does not reset the stop
    never_after_stop | no tool runs after Stop
    never_an_empty_second_send | the second automatic send answers like the first
    never_two_ends_by_timing | the same Stop gives the same end
    never_cut_and_final | what a limit cut is marked as interrupted
    never_billed_again_on_max_tokens | no loop around the longest answer
    never_results_without_their_call | the assistant's message stands before its results
    never_paired_by_anything_but_id | unknown ids are refused
    never_in_hash_order | parallel calls keep their order
    never_a_batch_failed_by_one | a malformed call is a failed result of its own
    never_empty_arguments_refused | they are an empty object
    never_one_timeout_for_all | connecting, silence and the whole have their own
    never_one_line_for_one_chunk | chunks are not lines
    never_characters_cut_in_two | UTF-8 across chunks
    never_temperature_unasked | not sent unless it was given
    never_credentials_to_another_host | not over a redirect
    never_an_unbounded_error_body | bounded in memory and in the message
    never_keys_in_words | not in logs, tracebacks, repr
    never_cut_between_call_and_result | history is shortened between groups
    never_an_old_stream_after_clearing | clear_history ends it first
    never_a_blocked_loop | the loop turns while everything else works
    never_one_round_only | follow-ups offer the tools again
    never_a_specialist_without_context | it is started with its own instructions and its task
    """
)
INVARIANTS = _rows(
    """
    invariant_1 | every committed call has exactly one result before the next text of the user
    invariant_2 | no start without an allow for exactly that digest; none after a cancel
    invariant_3 | started is journalled before the effect; at most once across crashes
    invariant_4 | a deny rule or a deeper nesting never enlarges what may run
    invariant_5 | results in call order; changes never overlap their neighbours
    invariant_6 | one end for each run, and last; no gaps; live equals replayed
    invariant_7 | every message that waits is delivered once or handed back
    invariant_8 | the person's mode holds for all that has not started; the agent's only at an edge
    invariant_9 | the pieces are the text; however the bytes are cut
    invariant_10 | repair is idempotent; there and back is the same; thinking unchanged
    invariant_11 | nothing splits a group
    invariant_12 | every loop ends
    invariant_13 | a second decision changes nothing
    invariant_14 | whatever raises, the next send is answered
    invariant_15 | restoring twice is restoring once; the person's changes are reported, not overwritten
    """
)
SECTIONS = (
    Section("Data", DATA),
    Section("Events", EVENTS),
    Section("Faces", FACES),
    Section("Semantics", SEMANTICS),
    Section("What never happens", NEVER),
    Section("Invariants", INVARIANTS),
)

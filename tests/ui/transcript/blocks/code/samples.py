"""Code in usual languages, with what reaches over lines in each."""

SAMPLES = {
    "python": '''import os

def greet(name: str) -> str:
    """Say hello.

    To all.
    """
    text = f"hello {name}"  # to you
    return text if os.environ else 'nobody'

@decorated
class Greeter:
    """One."""
    count = 0x1F
''',
    "js": """/* A comment
   over lines */
const greet = (name) => `hello ${name}
and more`; // done
function f(a) { return a.map((x) => x + 1.5); }
""",
    "typescript": """interface A { name: string; }
export const a: A = { name: "x" };
// end
""",
    "bash": """#!/bin/bash
for name in *.txt; do
  echo "$name
  and more" # here
done
""",
    "html": """<!-- a
comment -->
<div class="a"
     id='b'>text</div>
<script>var x = 1; // y
</script>
""",
    "css": """/* a
 b */
a:hover { color: #fff; margin: 0 1px; }
""",
    "rust": """/* a
 b */
fn main() -> u8 { let s = "x"; // y
  1
}
""",
    "java": """/** a
 * b */
class A { int f() { return 1; } }
""",
    "go": """func f() string {
	/* a
	b */ return `x
y`
}
""",
    "sql": """select a, 'b'
from t -- comment
where x = 1;
""",
    "json": """{
  "a": [1, 2.5, null],
  "b": {"c": "d"}
}
""",
    "c": """/* a
 b */
#include <stdio.h>
static size_t f(int a) { char *s = "x"; return a + 1; }
""",
    "yaml": """a: 1
b:
  - "x"
  - |
    text
""",
    "diff": """--- a
+++ b
@@ -1 +1 @@
-x
+y
""",
}

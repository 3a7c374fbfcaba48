"""Writes a language model of a few hundred kilobytes whose weights are chance: `python model.py FILE`.

Needs the packages gguf and numpy; `build.py` runs it where they are. The same file comes of it each time. It has a real
tokenizer (bytes, and pairs learned from the text below) and a chat template with tools. It says nothing but printable
characters, never stops by itself, and goes by a grammar like any other model.
"""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

SEED = 20_261_122
WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 4096
PAIRS = 120
CALL = "<tool_call>"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", CALL, "</tool_call>")
TEXT = """The weather in the harbour was calm, and the boats lay still. Somebody had written the name of every one of
them in a small book, with the day on which it came and the day on which it was to leave again. There was not much to do
but to wait for the evening, to look at the water, and to think of other things."""
# ChatML, with calls as Hermes and Qwen write them.
TEMPLATE = """{%- if tools %}<|im_start|>system
You may call functions. Their signatures are within <tools></tools>:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
For each call answer with JSON within <tool_call></tool_call>:
<tool_call>{"name": <function-name>, "arguments": <args-json-object>}</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content if message.content else "" }}
{%- for call in message.tool_calls or [] -%}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def letters() -> dict[int, str]:
    """The character that stands for each byte in tokens: its own where it is printable (GPT-2's table)."""
    own = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in own}
    others = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(256 + number) for number, byte in enumerate(others)}


def learned(text: str, table: dict[int, str]) -> list[tuple[str, str]]:
    """The pairs that are joined, the most frequent first."""
    words = [[table[byte] for byte in f" {word}".encode()] for word in text.split()]
    found: list[tuple[str, str]] = []
    for _ in range(PAIRS):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        found.append(best)
        words = [_joined(word, best) for word in words]
    return found


def _joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    made: list[str] = []
    for piece in word:
        if made and (made[-1], piece) == pair:
            made[-1] += piece
        else:
            made.append(piece)
    return made


def write(path: Path) -> None:
    """Write the model."""
    table = letters()
    pairs = learned(TEXT, table)
    tokens = [*(table[byte] for byte in range(256)), *("".join(pair) for pair in pairs), *SPECIAL]
    printable = {table[byte] for byte in range(ord(" "), ord("~") + 1)}
    said = np.array([token not in SPECIAL and set(token) <= printable for token in tokens])

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("chance")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    normal, control = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    writer.add_token_types([control if token in SPECIAL else normal for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_bos_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    chance = np.random.default_rng(SEED)

    def weights(*shape: int, scale: float = 0.05) -> np.ndarray:
        return (chance.standard_normal(shape) * scale).astype(np.float32)

    # The first number of every state is nearly the same, so that the last layer can tell by it what is never said.
    embedding = weights(len(tokens), WIDTH, scale=1.0)
    embedding[:, 0] = 8.0
    last = weights(len(tokens), WIDTH, scale=0.3)
    last[:, 0] = np.where(said, 0.0, -8.0)
    # Where it may call it soon does: the server then holds it to its grammar. Elsewhere this is not shown.
    last[tokens.index(CALL), 0] = 0.5
    # Behind the end of a call it stops, and nowhere else.
    end, closing = tokens.index("<|im_end|>"), tokens.index("</tool_call>")
    last[closing, 0] = 0.0
    last[end] = embedding[closing]
    last[end, 0] = -4.0
    writer.add_tensor("token_embd.weight", embedding)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"{block}.{name}.weight", weights(WIDTH, WIDTH))
        writer.add_tensor(f"{block}.ffn_gate.weight", weights(INNER, WIDTH))
        writer.add_tensor(f"{block}.ffn_up.weight", weights(INNER, WIDTH))
        writer.add_tensor(f"{block}.ffn_down.weight", weights(WIDTH, INNER))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", last)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]))

"""Another renderer in an interpreter of its own: says what it was asked for, hangs, eats memory, or calls home."""

SOURCE = '''
"""Does what the source of a diagram says."""
import json, os, shutil, socket, struct, subprocess, sys, time, zlib

class _Made:
    def __init__(self, source, theme, config):
        self._source = source
        word = source.split()[0]
        if word == "wrong":
            raise RuntimeError("Mermaid rendering failed: Error: Parse error on line 2:\\n...A[ --> B\\nExpecting")
        if word == "hang":
            while True:
                time.sleep(0.05)
        if word == "memory":
            bytearray(4_000_000_000)
        if word == "socket":
            socket.create_connection(("127.0.0.1", int(source.split()[1])))
        if word == "program":
            subprocess.run(["true"])
        if word == "file":
            open(source.split()[1], "w").write("x")
        if word == "do":
            eval(source.split(None, 1)[1])
            raise RuntimeError("it was done")
        if word == "die":
            os._exit(3)
        if word == "flood":
            sys.stdout.buffer.write(b"ok\\n" + b"x" * 40_000_000)
            sys.stdout.buffer.flush()
        if word == "secret":
            raise RuntimeError(os.environ.get("STAND_IN_SECRET", "nothing of yours"))

    def svg(self):
        return '<svg viewBox="0 0 300 200"><image href="file:///etc/passwd"/><use href="#a"/></svg>'

def render(source, theme, config):
    return _Made(source, theme, config)

def svg_to_png(svg, width):
    if "file:" in svg or "#a" not in svg:
        raise ValueError(svg)
    width = int(width)
    height = width * 2 // 3
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\\0" + b"\\x10\\x80\\x40" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
'''


def make(folder):
    """Return an interpreter that has this renderer."""
    import venv

    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "mermaidx.py").write_text(SOURCE)
    return str(folder / "bin" / "python")

"""The program that the suite starts for each scenario: it tells the tests, which run the client, and waits for its end.

A process that imports nothing starts in a moment; the client would take seconds each time.
"""

import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as end:
    end.connect(sys.argv[1])
    context = os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}").replace("\n", " ")
    end.sendall(f"{os.environ.get('MCP_CONFORMANCE_SCENARIO', '')}\n{sys.argv[2]}\n{context}\n".encode())
    told = end.makefile().read()
print(told)
sys.exit(0 if told.startswith("done") else 1)

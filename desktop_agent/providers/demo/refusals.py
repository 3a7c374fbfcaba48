"""Errors in each vendor's shape: Chat Completions, Responses, Anthropic Messages, Gemini generateContent."""

import secrets
from http import HTTPStatus
from typing import Any

from desktop_agent.vocabulary.endpoints import Dialect

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    500: "api_error",
}
_GEMINI_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 500: "INTERNAL"}


class RequestError(Exception):
    """A request that gets an error status. `code` is a word for programs, where the dialect has one."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)
        self.code = code


def error_body(refusal: RequestError, dialect: Dialect) -> dict[str, Any]:
    """The body of the answer."""
    message, status = str(refusal), int(refusal.status)
    match dialect:
        case "anthropic":
            error = {"type": _ANTHROPIC_TYPES.get(status, "invalid_request_error"), "message": message}
            return {"type": "error", "error": error, "request_id": new_request_id()}
        case "gemini":
            return {
                "error": {
                    "code": status,
                    "message": message,
                    "status": _GEMINI_STATUSES.get(status, "INVALID_ARGUMENT"),
                }
            }
        case "openai-chat" | "openai-responses":
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return {"error": {"message": message, "type": kind, "param": None, "code": refusal.code}}


def new_request_id() -> str:
    """An id such as vendors give each request."""
    return f"req_{secrets.token_hex(12)}"

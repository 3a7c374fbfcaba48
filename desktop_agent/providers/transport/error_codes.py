"""Which error each code, word and status of a server stands for."""

from desktop_agent.types.errors import (
    AuthenticationFailed,
    Conflict,
    ConnectionFailed,
    ContextLengthExceeded,
    InvalidRequest,
    NotFound,
    Overloaded,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    TimedOut,
    TooLarge,
    ToolUseFailed,
    UnreadableAnswer,
)

# Our word for Google's QuotaFailure of a quota that is counted by the day: waiting a minute does not help.
DAILY_QUOTA = "quota_per_day"

# Rows are tried in order; the first whose word stands anywhere in the body's codes, types and reasons wins.
SPECIFIC_WORDS: tuple[tuple[type[ProviderError], frozenset[str]], ...] = (
    (ToolUseFailed, frozenset({"tool_use_failed"})),
    (
        ContextLengthExceeded,
        frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}),
    ),
    (
        QuotaExhausted,
        frozenset(
            {
                "insufficient_quota",
                "credit_balance_exhausted",
                "organization_spend_limit_exceeded",
                "project_spend_limit_exceeded",
                "organization_usage_limit_exceeded",
                "billing_error",
                "billing_not_active",
                "billing_hard_limit_reached",
                "enforced_spend_limit_reached",
                "contract_spend_limit_reached",
                "exceeded_current_quota_error",
                "payment_required",
                "arrearage",
                DAILY_QUOTA,
            }
        ),
    ),
    (
        AuthenticationFailed,
        frozenset(
            {
                "invalid_api_key",
                "authentication_error",
                "unauthenticated",
                "api_key_invalid",
                "invalid_authentication_error",
                "incorrect_api_key_error",
                "invalidapikey",
            }
        ),
    ),
    (
        PermissionRefused,
        frozenset(
            {
                "permission_error",
                "permission_denied",
                "unsupported_country_region_territory",
                "request_forbidden",
                "organization_on_hold",
            }
        ),
    ),
    (TooLarge, frozenset({"request_too_large", "payload_too_large"})),
    (NotFound, frozenset({"model_not_found", "not_found_error", "not_found"})),
    (
        Overloaded,
        frozenset(
            {
                "server_is_overloaded",
                "service_unavailable_error",
                "overloaded_error",
                "unavailable_error",
                "unavailable",
                "service_unavailable",
                "engine_overloaded_error",
                "capacity_exceeded",
            }
        ),
    ),
    (
        RateLimited,
        frozenset(
            {
                "rate_limit_exceeded",
                "rate_limit_error",
                "slow_down",
                "resource_exhausted",
                "rate_limit_reached_error",
                "rate_limited",
                "too_many_requests",
                "throttling",
                "throttling.ratequota",
            }
        ),
    ),
    (TimedOut, frozenset({"timeout_error", "deadline_exceeded", "request_timeout", "vector_store_timeout"})),
    (Conflict, frozenset({"conflict_error"})),
    # What was asked, or what the model began to say, is withheld: the same again would be, too.
    (
        InvalidRequest,
        frozenset(
            {
                "sensitive",
                "content_filter",
                "content_policy_violation",
                "responsibleaipolicyviolation",
                "data_inspection_failed",
                "datainspectionfailed",
            }
        ),
    ),
    (ServerFailed, frozenset({"network_error"})),
)
# Z.AI and BigModel name their errors by a number and nothing else (docs.z.ai/api-reference/api-code). Elsewhere the
# same numbers mean other things, and stand beside a word: with Mistral 1300 is a limit of rate.
ZAI_CODES: dict[str, type[ProviderError]] = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), AuthenticationFailed),
    **dict.fromkeys(("1113", "1304", "1308", "1309", "1310"), QuotaExhausted),
    **dict.fromkeys(("1110", "1112", "1121", "1220", "1311"), PermissionRefused),
    "1211": NotFound,
    "1234": ServerFailed,
    "1261": ContextLengthExceeded,
    "1301": InvalidRequest,
    **dict.fromkeys(("1302", "1303", "1305"), RateLimited),
    "1312": Overloaded,
}
# platform.minimax.io/docs/api-reference/errorcode, by words that others use.
MINIMAX_CODES = {1002: "rate_limit_exceeded", 1004: "invalid_api_key", 1008: "insufficient_quota"}
# A Responses stream that failed says only this about what was sent (openai SDK, ResponseError.code).
_REFUSED_INPUT = frozenset(
    {
        "invalid_prompt",
        "data_residency_mismatch",
        "bio_policy",
        "misalignment_policy_violation",
        "invalid_encrypted_content",
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_content_policy_violation",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
GENERAL_WORDS: tuple[tuple[type[ProviderError], frozenset[str]], ...] = (
    (
        InvalidRequest,
        frozenset({"invalid_request_error", "invalid_argument", "failed_precondition", "badrequesterror"}),
    ),
    (InvalidRequest, _REFUSED_INPUT),
    (ServerFailed, frozenset({"server_error", "api_error", "internal", "internal_server_error"})),
)
ERRORS_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: PermissionRefused,
    404: NotFound,
    405: NotFound,
    408: TimedOut,
    409: Conflict,
    410: NotFound,
    413: TooLarge,
    429: RateLimited,
    434: PermissionRefused,  # Z.AI: an interface that this account has no part in
    435: TooLarge,  # Z.AI: a file
    498: Overloaded,  # Groq's own: no capacity for the flex tier (console.groq.com/docs/errors)
    499: ServerFailed,  # nginx's and Google's own: whoever asked has gone, and that was a gateway before the server
    503: Overloaded,
    504: TimedOut,
    511: UnreadableAnswer,  # a network that wants a person to sign in first (RFC 6585)
    # Cloudflare's own, about the server behind it: down, slow to connect, not found, slow to answer, no TLS.
    521: ConnectionFailed,
    522: TimedOut,
    523: ConnectionFailed,
    524: TimedOut,
    525: ConnectionFailed,
    526: ConnectionFailed,
    529: Overloaded,
    # What proxies say of silence behind them.
    598: TimedOut,
    599: TimedOut,
}

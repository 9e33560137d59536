#include "broker/http/codes.h"

namespace muster::http {
namespace {

struct Row {
  absl::StatusCode code;
  std::string_view name;
  int http_status;
};

constexpr Row kRows[] = {
    {absl::StatusCode::kOk, "ok", 200},
    {absl::StatusCode::kCancelled, "canceled", 499},
    {absl::StatusCode::kUnknown, "unknown", 500},
    {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {absl::StatusCode::kNotFound, "not_found", 404},
    {absl::StatusCode::kAlreadyExists, "already_exists", 409},
    {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
    {absl::StatusCode::kAborted, "aborted", 409},
    {absl::StatusCode::kOutOfRange, "out_of_range", 400},
    {absl::StatusCode::kUnimplemented, "unimplemented", 501},
    {absl::StatusCode::kInternal, "internal", 500},
    {absl::StatusCode::kUnavailable, "unavailable", 503},
    {absl::StatusCode::kDataLoss, "data_loss", 500},
    {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
};

const Row& RowOf(absl::StatusCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return kRows[static_cast<int>(absl::StatusCode::kUnknown)];
}

struct Phrase {
  int http_status;
  std::string_view words;
};

constexpr Phrase kPhrases[] = {
    {200, "OK"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

std::string_view ConnectCode(absl::StatusCode code) { return RowOf(code).name; }

int HttpStatus(absl::StatusCode code) { return RowOf(code).http_status; }

std::string_view ReasonPhrase(int http_status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.http_status == http_status) return phrase.words;
  }
  return "Unknown";
}

}  // namespace muster::http

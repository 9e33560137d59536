#include "broker/store/sqlite/functions.h"

#include <optional>
#include <string>
#include <string_view>

#include "contract/filter.h"
#include "muster/v1/job.pb.h"

namespace muster::store {
namespace {

std::string_view TextOf(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) return "";
  return {text, static_cast<size_t>(sqlite3_value_bytes(value))};
}

// False: the value is NULL, or not such a message.
template <typename Message>
bool ParseBlob(sqlite3_value* value, Message* out) {
  const void* bytes = sqlite3_value_blob(value);
  return bytes != nullptr && out->ParseFromArray(bytes, sqlite3_value_bytes(value));
}

void Matches(sqlite3_context* context, int, sqlite3_value** arguments) {
  sqlite3_result_int(context, contract::MatchesPattern(TextOf(arguments[0]), TextOf(arguments[1])));
}

void Label(sqlite3_context* context, int, sqlite3_value** arguments) {
  v1::Job job;
  if (!ParseBlob(arguments[0], &job)) return sqlite3_result_null(context);
  const auto label = job.labels().find(std::string(TextOf(arguments[1])));
  if (label == job.labels().end()) return sqlite3_result_null(context);
  sqlite3_result_text(context, label->second.data(), static_cast<int>(label->second.size()),
                      SQLITE_TRANSIENT);
}

void ExitCode(sqlite3_context* context, int, sqlite3_value** arguments) {
  v1::Run run;
  if (!ParseBlob(arguments[0], &run) || !run.has_exit()) return sqlite3_result_null(context);
  const std::optional<int32_t> code = contract::ExitCodeOf(run.exit());
  code ? sqlite3_result_int(context, *code) : sqlite3_result_null(context);
}

void FailureClass(sqlite3_context* context, int, sqlite3_value** arguments) {
  v1::Run run;
  if (!ParseBlob(arguments[0], &run) ||
      run.failure().failure_class() == v1::FAILURE_CLASS_UNSPECIFIED) {
    return sqlite3_result_null(context);
  }
  sqlite3_result_int(context, run.failure().failure_class());
}

}  // namespace

absl::Status AddFunctions(const Database& database) {
  struct Function {
    const char* name;
    int arguments;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  constexpr Function kFunctions[] = {
      {"muster_matches", 2, &Matches},
      {"muster_label", 2, &Label},
      {"muster_exit_code", 1, &ExitCode},
      {"muster_failure_class", 1, &FailureClass},
  };
  for (const Function& function : kFunctions) {
    const int code =
        sqlite3_create_function_v2(database.handle(), function.name, function.arguments,
                                   SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, nullptr,
                                   function.call, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return database.ToStatus(code, "add a function");
  }
  return absl::OkStatus();
}

}  // namespace muster::store

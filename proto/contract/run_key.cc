#include "contract/run_key.h"

#include <charconv>
#include <system_error>

#include "contract/characters.h"
#include "contract/errors.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// Digits without a leading zero, the whole text; so that each key has one spelling.
template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  if (text.empty() || text.front() < '1' || text.front() > '9') return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

}  // namespace

bool IsInstance(std::string_view text) {
  if (text.size() != kInstanceLength || !IsLowerLetter(text.front())) return false;
  for (char c : text) {
    if (!IsLowerLetter(c) && !IsDigit(c)) return false;
  }
  return true;
}

std::string RunKey::ToString() const { return fmt::format("{}-{}-{}", instance, job, run); }

absl::StatusOr<RunKey> RunKey::Parse(std::string_view text) {
  RunKey key;
  const size_t first = text.find('-');
  const size_t second = first == text.npos ? text.npos : text.find('-', first + 1);
  if (second != text.npos && IsInstance(text.substr(0, first)) &&
      ReadNumber(text.substr(first + 1, second - first - 1), &key.job) &&
      ReadNumber(text.substr(second + 1), &key.run)) {
    key.instance = text.substr(0, first);
    return key;
  }
  return BadField("run_key",
                  fmt::format("{} is not a run key; they look like \"k7m2-42-1\": the broker's "
                              "instance, the job and the run",
                              Quoted(text)));
}

}  // namespace muster::contract

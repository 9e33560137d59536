#include "agents/core/log_evidence.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agents/core/clean_text.h"
#include "contract/characters.h"
#include "contract/failures.h"

namespace muster::agents {
namespace {

// Several ranks may say the same; a few quotes are enough.
constexpr size_t kQuotedLogs = 3;

struct Found {
  const LogEnd* log = nullptr;
  contract::LogVerdict verdict;
};

// One for each log that tells something, what counts most first.
std::vector<Found> FindAll(const contract::FailurePatterns& patterns,
                           const std::vector<LogEnd>& logs, bool may_have_gpus) {
  std::vector<Found> found;
  for (const LogEnd& log : logs) {
    std::optional<contract::LogVerdict> verdict =
        patterns.Find(LastLines(log.text, kMaxEvidenceLines), may_have_gpus);
    // The program ran, so its container had started: it speaks of another image.
    if (!verdict.has_value() || verdict->failure_class == v1::FAILURE_CLASS_IMAGE) continue;
    found.push_back({&log, *std::move(verdict)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.verdict.row < b.verdict.row; });
  return found;
}

std::string_view LastWords(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find_last_not_of("\r\n \t");
    if (end == text.npos) return {};
    text = text.substr(0, end + 1);
    const size_t begin = text.find_last_of("\r\n");
    return begin == text.npos ? text : text.substr(begin + 1);
  }
  return {};
}

// Returns the first stderr with words, or else the first stdout. Null: none has any.
const LogEnd* FirstThatSpeaks(const std::vector<LogEnd>& logs) {
  const LogEnd* first = nullptr;
  for (const LogEnd& log : logs) {
    if (LastWords(log.text).empty()) continue;
    if (log.is_stderr) return &log;
    if (first == nullptr) first = &log;
  }
  return first;
}

// The cluster's own report about memory and time stands, unless the cluster was at fault.
bool Decides(const contract::LogVerdict& verdict, const v1::Failure& failure) {
  return verdict.retriable || failure.failure_class() == v1::FAILURE_CLASS_PROGRAM;
}

}  // namespace

bool MayLogsTell(const Observation& seen) {
  if (seen.state != v1::RUN_STATE_FAILED || !seen.failure.has_value()) return false;
  const v1::FailureClass failure_class = seen.failure->failure_class();
  return seen.may_logs_tell || failure_class == v1::FAILURE_CLASS_PROGRAM ||
         failure_class == v1::FAILURE_CLASS_OOM;
}

std::string_view LastLines(std::string_view text, size_t max_lines) {
  size_t begin = text.size();
  if (text.ends_with('\n')) --begin;
  for (size_t lines = 0; lines < max_lines && begin > 0; ++lines) {
    const size_t line_break = text.rfind('\n', begin - 1);
    if (line_break == text.npos) return text;
    begin = line_break;
  }
  return begin == text.size() ? std::string_view() : text.substr(begin + (text[begin] == '\n'));
}

void RefineByLogs(const contract::FailurePatterns& patterns, const std::vector<LogEnd>& logs,
                  bool may_have_gpus, v1::Failure* failure) {
  const std::vector<Found> found = FindAll(patterns, logs, may_have_gpus);
  if (!found.empty() && Decides(found.front().verdict, *failure)) {
    const contract::LogVerdict& verdict = found.front().verdict;
    failure->set_failure_class(verdict.failure_class);
    failure->set_retriable(verdict.retriable);
    failure->set_log_sign(verdict.pattern);
    contract::PutSentence(contract::FailureCause::kNone, failure);
  }
  for (const Found& one : found) {
    if (one.verdict.row != found.front().verdict.row) break;
    if (&one - found.data() >= static_cast<ptrdiff_t>(kQuotedLogs)) break;
    AddQuote(one.log->name, one.verdict.line, failure);
  }
  if (!found.empty()) return;
  const LogEnd* log = FirstThatSpeaks(logs);
  if (log != nullptr) AddQuote(log->name, LastWords(log->text), failure);
}

void AddQuote(std::string_view source, std::string_view text, v1::Failure* failure) {
  std::string plain;
  for (std::string_view rest = text; !rest.empty() && plain.size() < kMaxQuoteBytes;) {
    const size_t size = std::max<size_t>(contract::CharacterBytes(rest), 1);
    const std::string_view character = rest.substr(0, size);
    plain += contract::HasControlCharacter(character) ? " " : character;
    rest.remove_prefix(size);
  }
  plain = CleanText(plain, kMaxQuoteBytes);
  if (plain.find_first_not_of(' ') == std::string::npos) return;
  if (failure->quotes_size() >= kMaxQuotes) return;
  v1::FailureQuote* quote = failure->add_quotes();
  quote->set_source(std::string(source));
  quote->set_text(std::move(plain));
}

}  // namespace muster::agents

#include "agents/slurm/rest_checks.h"

#include <algorithm>
#include <utility>

#include "agents/slurm/rest_json.h"
#include "agents/slurm/rest_token.h"
#include "contract/message_of.h"
#include "contract/text.h"
#include "contract/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

using nlohmann::json;

// Returns "UP" or another word; v0.0.40 has another name for it.
std::string WordOfPing(const json& ping) {
  const std::string old_word = TextOf(Member(ping, "ping"));
  return old_word.empty() ? TextOf(Member(ping, "pinged")) : old_word;
}

}  // namespace

bool AnyIsUp(const json& answer) {
  const json* pings = ListIn(answer, "pings");
  return pings == nullptr || pings->empty() ||
         std::any_of(pings->begin(), pings->end(),
                     [](const json& one) { return WordOfPing(one) == "UP"; });
}

bool JudgeToken(const absl::StatusOr<std::string>& token, const std::string& user,
                const std::string& file, absl::Time now, agents::CheckList* checks) {
  constexpr char kSubject[] = "token for slurmrestd";
  if (!token.ok()) {
    checks->Fail(v1::CHECK_CODE_LOGIN, kSubject, MessageOf(token.status()),
                 "slurm.rest_token_file names a file with a token of the user (mode 0600); without "
                 "it, scontrol token has to work on the host");
    return false;
  }
  const std::string source = file.empty() ? "scontrol token" : fmt::format("\"{}\"", file);
  const std::string owner = TokenUser(*token);
  const std::optional<absl::Time> end = TokenEnd(*token);
  const std::string seen = fmt::format(
      "from {}, for user {}, {}", source, owner.empty() ? user : owner,
      end.has_value()
          ? "ends in " + contract::FormatDuration(absl::Trunc(*end - now, absl::Seconds(1)))
          : "does not say when it ends");
  if (!owner.empty() && owner != user) {
    checks->Warn(v1::CHECK_CODE_LOGIN, kSubject,
                 fmt::format("{}, while jobs are to be those of {}", seen, user),
                 "set slurm.rest_user to whom the token is for; only SlurmUser and root may speak "
                 "for others");
  } else if (!file.empty() && end.has_value() && *end - now < kTokenRestToTell) {
    checks->Warn(v1::CHECK_CODE_LOGIN, kSubject, seen,
                 "see that whoever writes the file renews it in time");
  } else {
    checks->Ok(v1::CHECK_CODE_LOGIN, kSubject, seen);
  }
  return true;
}

bool JudgeServes(const std::string& url, const absl::StatusOr<RestServes>& serves,
                 agents::CheckList* checks) {
  const std::string subject = "slurmrestd at " + url;
  if (serves.ok()) {
    checks->Ok(v1::CHECK_CODE_SCHEDULER, subject,
               fmt::format("it serves API {}; {} is spoken", fmt::join(serves->versions, ", "),
                           serves->version));
    return true;
  }
  const bool is_reached = absl::IsFailedPrecondition(serves.status());
  checks->Fail(v1::CHECK_CODE_SCHEDULER, subject, MessageOf(serves.status()),
               is_reached ? fmt::format("have it started with {}", kHowToServe)
                          : "see that slurmrestd runs, and that slurm.rest_url is its address");
  return false;
}

bool JudgePing(const absl::StatusOr<RestAnswer>& ping, agents::CheckList* checks) {
  constexpr char kSubject[] = "slurmctld";
  std::string seen;
  bool is_up = false;
  const json* pings = ping.ok() ? ListIn(*ping->json, "pings") : nullptr;
  for (const json& one : pings == nullptr ? json::array() : *pings) {
    const std::string word = WordOfPing(one);
    is_up = is_up || word == "UP";
    seen += fmt::format("{}{} at {} is {}", seen.empty() ? "" : ", ", TextOf(Member(one, "mode")),
                        TextOf(Member(one, "hostname")), word);
  }
  if (is_up) {
    checks->Ok(v1::CHECK_CODE_SCHEDULER, kSubject, seen);
    return true;
  }
  if (!ping.ok()) seen = MessageOf(ping.status());
  checks->Fail(
      v1::CHECK_CODE_SCHEDULER, kSubject, seen.empty() ? "slurmrestd knows of none" : seen,
      "see that it is up (scontrol ping where Slurm's commands are), and that the token is "
      "one of this cluster's");
  return false;
}

std::optional<absl::Time> RestControllerTime(const json& answer) {
  return TimeOf(Member(Member(answer, "statistics"), "req_time"));
}

absl::StatusOr<std::vector<Association>> RestAssociations(const json& answer,
                                                          const std::string& cluster,
                                                          const std::string& user) {
  const json* list = ListIn(answer, "associations");
  if (list == nullptr) return UnreadableAnswer("no list of associations, or one");
  std::vector<Association> mine;
  for (const json& one : *list) {
    if (TextOf(Member(one, "user")) != user) continue;
    if (!cluster.empty() && TextOf(Member(one, "cluster")) != cluster) continue;
    std::vector<std::string> qos = WordsOf(Member(one, "qos"));
    // v0.0.37 tells their numbers, which say nothing about what a partition allows.
    std::erase_if(qos, [](const std::string& name) {
      return name.find_first_not_of("0123456789") == std::string::npos;
    });
    Association association{TextOf(Member(one, "account")), TextOf(Member(one, "partition")),
                            std::move(qos)};
    association.line = AccountsInLineage(TextOf(Member(one, "lineage")));
    mine.push_back(std::move(association));
  }
  return mine;
}

}  // namespace muster::slurm

// Verbs about clusters: clusters, check, forget.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
#include "contract/counted.h"
#include "contract/text.h"

namespace muster::cli {
namespace {

// Returns whether the broker has answered that the cluster's agent cannot be asked now, does not
// know the question, or is not asked for this user.
bool IsSilentAgent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnimplemented(status) || absl::IsPermissionDenied(status);
}

// Returns the cluster as its agent sees it now; if the agent cannot be asked, as it last reported.
absl::StatusOr<v1::DescribeClusterResponse> Describe(Session& session, const std::string& name) {
  v1::DescribeClusterRequest request;
  request.set_name(name);
  auto described = session.client.DescribeCluster(request);
  if (described.ok() || !IsSilentAgent(described.status())) return described;
  v1::GetClusterRequest get;
  get.set_name(name);
  const auto known = session.client.GetCluster(get);
  if (!known.ok()) return known.status();
  session.terminal.Note(fmt::format("this is what was last known; its agent did not answer: {}",
                                    ToStd(described.status().message())));
  v1::DescribeClusterResponse response;
  *response.mutable_cluster() = known->cluster();
  return response;
}

int OneCluster(Session& session) {
  const auto response = Describe(session, session.call.cluster_words.front());
  if (!response.ok()) return Fail(session, response.status());
  if (session.ids_only()) {
    session.terminal.Out(Harmless(response->cluster().name()) + "\n");
  } else if (!session.for_people()) {
    PrintMessage(session, *response);
  } else {
    session.terminal.Out(ClusterPage(response->cluster(),
                                     response->has_details() ? &response->details() : nullptr,
                                     session.style(), absl::Now()));
  }
  return kOk;
}

// The token goes to stdout, so that a script can take it; the rest is for people.
// Tells that it was done to the cluster: `id`, which is its name or what was made for it, the
// response, or `say` for people.
int Tell(Session& session, const std::string& id, const google::protobuf::Message& response,
         const std::function<void()>& say) {
  if (session.ids_only()) {
    session.terminal.Out(Harmless(id) + "\n");
  } else if (!session.for_people()) {
    PrintMessage(session, response);
  } else {
    say();
  }
  return kOk;
}

int Tell(Session& session, const std::string& name, const google::protobuf::Message& response,
         const std::string& note) {
  return Tell(session, name, response, [&] { session.terminal.Note(note); });
}

int Invite(Session& session, const std::string& name) {
  v1::InviteClusterRequest request;
  request.set_name(name);
  const auto response = session.client.InviteCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  return Tell(session, response->token(), *response, [&] {
    session.terminal.Note(fmt::format(
        "run this on the host of the agent of {} within an hour; the token is good once, and does "
        "not belong into an argument, which others see:",
        Harmless(name)));
    session.terminal.Out(fmt::format("echo {} | muster-agent enroll --broker {} --state-dir DIR\n",
                                     Harmless(response->token()), Harmless(response->address())));
  });
}

int Revoke(Session& session, const std::string& name) {
  v1::RevokeClusterRequest request;
  request.set_name(name);
  const auto response = session.client.RevokeCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  return Tell(session, name, *response,
              fmt::format("refused from now on: {} certificates and {} open invitations of {}; its "
                          "runs go on; muster clusters invite {} lets an agent come back",
                          response->certificates(), response->invitations(), Harmless(name),
                          Harmless(name)));
}

int Cordon(Session& session, const std::string& name, bool drain) {
  v1::CordonClusterRequest request;
  request.set_name(name);
  request.set_reason(session.call.reason);
  request.set_drain(drain);
  const auto response = session.client.CordonCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  const uint32_t runs = response->cluster().active_runs();
  return Tell(session, name, *response,
              fmt::format("cluster {0} takes no new runs{2}; {1} there; muster clusters uncordon "
                          "{0} ends it",
                          Harmless(name), contract::Counted(runs, "active run"),
                          drain ? ", and gives back those that have not begun" : ""));
}

int Uncordon(Session& session, const std::string& name) {
  v1::UncordonClusterRequest request;
  request.set_name(name);
  const auto response = session.client.UncordonCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  return Tell(session, name, *response, fmt::format("cluster {} takes runs", Harmless(name)));
}

// Does what the word before the name says. Nothing: there is no such word.
std::optional<int> DoByWord(Session& session) {
  const std::vector<std::string>& words = session.call.cluster_words;
  if (words.size() != 2) return std::nullopt;
  if (words.front() == "cordon") return Cordon(session, words.back(), /*drain=*/false);
  if (words.front() == "drain") return Cordon(session, words.back(), /*drain=*/true);
  if (!session.call.reason.empty()) return std::nullopt;
  if (words.front() == "uncordon") return Uncordon(session, words.back());
  if (words.front() == "invite") return Invite(session, words.back());
  if (words.front() == "revoke") return Revoke(session, words.back());
  return std::nullopt;
}

}  // namespace

int Clusters(Session& session) {
  const std::vector<std::string>& words = session.call.cluster_words;
  if (const std::optional<int> code = DoByWord(session)) return *code;
  if (words.size() > 1 || !session.call.reason.empty()) {
    session.terminal.Note(
        "write muster clusters [NAME], clusters invite NAME, clusters revoke NAME, clusters cordon "
        "NAME [--reason TEXT], clusters drain NAME [--reason TEXT] or clusters uncordon NAME");
    return kUsage;
  }
  if (words.size() == 1) return OneCluster(session);
  v1::ListClustersResponse all;
  v1::ListClustersRequest request;
  do {
    const auto page = session.client.ListClusters(request);
    if (!page.ok()) return Fail(session, page.status());
    all.mutable_clusters()->MergeFrom(page->clusters());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  const absl::Time now = absl::Now();
  if (session.ids_only()) {
    for (const v1::Cluster& cluster : all.clusters()) {
      session.terminal.Out(Harmless(cluster.name()) + "\n");
    }
  } else if (session.by_line()) {
    for (const v1::Cluster& cluster : all.clusters())
      session.terminal.Out(LineOf(session, cluster));
  } else if (!session.for_people()) {
    PrintMessage(session, all);
  } else if (all.clusters().empty()) {
    session.terminal.Note("no cluster yet; an agent brings one: muster-agent --cluster NAME ...");
  } else {
    Table table(ClusterColumns(session.style()), session.style().look());
    for (const v1::Cluster& c : all.clusters()) table.Add(ClusterRow(c, session.style(), now));
    session.terminal.Out(table.Take());
  }
  return kOk;
}

int Check(Session& session) {
  v1::CheckClusterRequest request;
  request.set_name(session.call.cluster);
  const auto response = session.client.CheckCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  if (session.ids_only()) {
    for (const v1::ClusterCheck& check : response->checks()) {
      if (check.result() == v1::CHECK_RESULT_FAIL) {
        session.terminal.Out(OneLine(check.subject()) + "\n");
      }
    }
  } else if (session.by_line()) {
    for (const v1::ClusterCheck& check : response->checks()) {
      session.terminal.Out(LineOf(session, check));
    }
  } else if (!session.for_people()) {
    PrintMessage(session, *response);
  } else {
    session.terminal.Out(ChecksText(response->checks(), session.style()));
  }
  const bool has_failed =
      std::any_of(response->checks().begin(), response->checks().end(),
                  [](const auto& check) { return check.result() == v1::CHECK_RESULT_FAIL; });
  return has_failed ? kError : kOk;
}

int Forget(Session& session) {
  v1::ForgetClusterRequest request;
  request.set_name(session.call.cluster);
  const auto response = session.client.ForgetCluster(request);
  if (!response.ok()) return Fail(session, response.status());
  if (session.ids_only()) {
    session.terminal.Out(Harmless(request.name()) + "\n");
  } else if (!session.for_people()) {
    PrintMessage(session, *response);
  } else {
    session.terminal.Note(
        fmt::format("cluster {} is forgotten; an agent of that name would bring "
                    "a new one",
                    Harmless(request.name())));
  }
  return kOk;
}

}  // namespace muster::cli

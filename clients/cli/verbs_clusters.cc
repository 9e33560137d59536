// Verbs about clusters: clusters, check, forget.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "absl/time/clock.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/text.h"
#include "clients/cli/verbs.h"
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
  const auto response = Describe(session, session.call.cluster);
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

}  // namespace

int Clusters(Session& session) {
  if (!session.call.cluster.empty()) return OneCluster(session);
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
  } else if (session.format == Format::kJsonLines) {
    for (const v1::Cluster& cluster : all.clusters()) session.terminal.Out(ToJsonLine(cluster));
  } else if (!session.for_people()) {
    PrintMessage(session, all);
  } else if (all.clusters().empty()) {
    session.terminal.Note("no cluster yet; an agent brings one: muster-agent --cluster NAME ...");
  } else {
    Table table(ClusterColumns(session.style()), session.terminal.colours());
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
  } else if (session.format == Format::kJsonLines) {
    for (const v1::ClusterCheck& check : response->checks()) {
      session.terminal.Out(ToJsonLine(check));
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

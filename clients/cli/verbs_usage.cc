// The verb usage: tell what projects, users and clusters have used.
#include <google/protobuf/util/time_util.h>

#include "clients/cli/exit_code.h"
#include "clients/cli/usage_table.h"
#include "clients/cli/verbs.h"

namespace muster::cli {
namespace {

using google::protobuf::util::TimeUtil;

v1::GetUsageRequest RequestOf(const UsageFlags& flags) {
  v1::GetUsageRequest request;
  const auto set = [](absl::Time time, google::protobuf::Timestamp* out) {
    *out = TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(time));
  };
  if (flags.since != absl::InfinitePast()) set(flags.since, request.mutable_start_time());
  if (flags.until != absl::InfiniteFuture()) set(flags.until, request.mutable_end_time());
  request.set_project(flags.project);
  request.set_user(flags.user);
  request.set_cluster(flags.cluster);
  for (const v1::UsageGrouping grouping : flags.by) request.add_group_by(grouping);
  if (flags.by.empty()) request.add_group_by(v1::USAGE_GROUPING_PROJECT);
  return request;
}

}  // namespace

int Usage(Session& session) {
  const v1::GetUsageRequest request = RequestOf(session.call.usage);
  const auto response = session.client.GetUsage(request);
  if (!response.ok()) return Fail(session, response.status());
  if (session.for_people() && !session.ids_only()) {
    session.terminal.Out(UsageTable(request, *response, session.style()));
  } else {
    PrintMessage(session, *response);
  }
  return kOk;
}

}  // namespace muster::cli

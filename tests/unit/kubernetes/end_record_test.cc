// The records that our scripts leave as a container's last message, and who cannot make them.
#include "agents/kubernetes/objects/end_record.h"

#include "absl/time/clock.h"
#include "agents/kubernetes/objects/objects.h"
#include "agents/kubernetes/verdict/explain_failure.h"
#include "agents/kubernetes/verdict/replicas.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

// Makes a pod of the Job "j" whose container main has ended with that code and last message.
PodObject EndedPod(int code, const std::string& message) {
  Json pod = Json::parse(R"({
    "metadata": {"name": "k7m2-42-1-0", "uid": "p", "ownerReferences": [{"kind": "Job", "uid": "j"}]},
    "spec": {"nodeName": "node-1"},
    "status": {"phase": "Failed", "containerStatuses": [{"name": "main"}]}})");
  pod["status"]["containerStatuses"][0]["state"]["terminated"] = {
      {"exitCode", code}, {"reason", "Error"}, {"message", message}};
  return ParsePod(pod);
}

Ending EndOfPod(const PodObject& pod) { return ExplainFailure(JobObject(), Condition(), {pod}); }

TEST(EndRecordTest, NothingThatAProgramSaysIsTakenForTheStartScriptsRecord) {
  for (const char* message :
       {"muster: setup failed", "muster: the command could not be started: ./gone",
        "muster-end/1 seal= phase=setup problem=failed",
        "muster-end/1 seal=k7m2-42-1 phase=setup problem=failed",
        "muster-end/1 phase=setup problem=failed", "seal=j phase=setup problem=failed",
        "muster-end/1 seal=j phase=lunch problem=failed", "muster-end/1 seal=j phase=setup"}) {
    const Ending end = EndOfPod(EndedPod(2, message));
    EXPECT_EQ(end.failure.failure_class(), v1::FAILURE_CLASS_PROGRAM) << message;
    EXPECT_EQ(end.failure.phase(), v1::FAILURE_PHASE_COMMAND) << message;
    ASSERT_TRUE(end.exit.has_value()) << message;
    EXPECT_EQ(end.exit->code(), 2) << message;
  }
}

TEST(EndRecordTest, ARecordIsToldInWordsAndWithoutItsSeal) {
  const PodObject pod = EndedPod(127, "muster-end/1 seal=j phase=setup problem=start\n/no/shell\n");
  const Ending end = EndOfPod(pod);
  EXPECT_EQ(end.failure.phase(), v1::FAILURE_PHASE_SETUP_START);
  EXPECT_FALSE(end.exit.has_value());
  const std::vector<v1::Replica> replicas = MakeReplicas({pod}, {}, absl::Now(), nullptr);
  ASSERT_EQ(replicas.size(), 1u);
  EXPECT_THAT(replicas[0].issue().message(),
              testing::HasSubstr("exit code 127: the setup could not be started: /no/shell"));
  EXPECT_THAT(end.failure.DebugString() + replicas[0].DebugString(),
              testing::Not(testing::HasSubstr("seal")));
}

TEST(EndRecordTest, APodWithoutAJobHasNoRecord) {
  std::string message = "muster-end/1 seal= phase=setup problem=failed";
  EXPECT_TRUE(TakeEndRecords("", &message).empty());
}

}  // namespace
}  // namespace muster::kubernetes

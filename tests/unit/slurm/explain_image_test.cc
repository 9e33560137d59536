#include "agents/slurm/explain_image.h"

#include <string>
#include <vector>

#include "contract/failures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Writes a failed import as Pyxis 0.24 does, from each node of a run.
std::string FailedImport(const std::string& reason) {
  std::string text;
  for (const std::string node : {"n1", "n2"}) {
    const std::string start = "slurmstepd-" + node + ": error: ";
    text += start + "pyxis: child 77 failed with error code: 1\n";
    text += start + "pyxis: failed to import docker image: registry.test#a/b:1\n";
    text += start + "pyxis: printing enroot log file:\n";
    text += start + "pyxis:     [INFO] Querying registry for permission grant\n";
    text += start + "pyxis:     " + reason + "\n";
    text += start + "pyxis: couldn't start container\n";
    text += start + "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1\n";
    text += start + "Failed to invoke spank plugin stack\n";
  }
  return text + "srun: error: n1: task 0: Exited with exit code 1\n";
}

std::string RemedyOf(const ImageTrouble& trouble) {
  return contract::MakeFailure(trouble.code, trouble.failure_class, {.cause = trouble.cause})
      .remedy();
}

TEST(ExplainImageTest, EnrootsReasonIsQuotedOnceWithoutTheChatter) {
  const std::string reason =
      "[ERROR] URL https://registry.test/v2/a/b/manifests/1 returned error code: 404 Not Found";
  const ImageTrouble trouble = ExplainImage(FailedImport(reason));
  EXPECT_THAT(trouble.words, ElementsAre(reason));
  EXPECT_EQ(trouble.failure_class, v1::FAILURE_CLASS_IMAGE);
  EXPECT_EQ(trouble.code, v1::FAILURE_CODE_IMAGE_NOT_FOUND);
}

TEST(ExplainImageTest, EachReasonHasItsRemedy) {
  struct Case {
    std::string reason;
    v1::FailureCode code;
    std::string remedy;
  };
  const std::vector<Case> cases = {
      {"[ERROR] URL https://r/token returned error code: 401 Unauthorized",
       v1::FAILURE_CODE_IMAGE_ACCESS_DENIED, "install-credentials"},
      {"[ERROR] URL https://r/token returned error code: 403 Forbidden",
       v1::FAILURE_CODE_IMAGE_ACCESS_DENIED, ".credentials"},
      {"[ERROR] Could not process JSON input", v1::FAILURE_CODE_IMAGE_ACCESS_DENIED,
       "install-credentials"},
      {"[ERROR] Invalid image reference: docker://A", v1::FAILURE_CODE_IMAGE_NAME_INVALID, ""},
      {"curl: (6) Could not resolve host: nowhere.test", v1::FAILURE_CODE_REGISTRY_UNAVAILABLE,
       "registry's name"},
      {"curl: (7) Failed to connect to 10.0.0.1 port 443", v1::FAILURE_CODE_REGISTRY_UNAVAILABLE,
       "registry's name"},
      {"Write failed because No space left on device", v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE, "full"},
      {"[ERROR] Invalid image format: /data/junk.sqsh", v1::FAILURE_CODE_IMAGE_BROKEN,
       "Convert the image again"},
      {"[ERROR] No such file or directory: /data/x.sqsh", v1::FAILURE_CODE_IMAGE_NOT_FOUND,
       "Check its path"},
  };
  for (const Case& c : cases) {
    const ImageTrouble trouble = ExplainImage(FailedImport(c.reason));
    EXPECT_EQ(trouble.failure_class, v1::FAILURE_CLASS_IMAGE) << c.reason;
    EXPECT_EQ(trouble.code, c.code) << c.reason;
    EXPECT_THAT(RemedyOf(trouble), HasSubstr(c.remedy)) << c.reason;
    EXPECT_THAT(trouble.words, ElementsAre(c.reason));
  }
}

TEST(ExplainImageTest, WhatTheConversionSaidIsRead) {
  const ImageTrouble trouble = ExplainImage(
      "muster: image: [INFO] Authenticating with user: <anonymous>\n"
      "muster: image: [ERROR] Could not process JSON input\n"
      "muster: image: srun: error: n1: task 0: Exited with exit code 1\n");
  EXPECT_THAT(trouble.words, ElementsAre("[ERROR] Could not process JSON input"));
  EXPECT_THAT(RemedyOf(trouble), HasSubstr(".credentials"));
}

TEST(ExplainImageTest, AMountThatIsNotThereIsAFaultOfTheConfiguration) {
  const ImageTrouble trouble = ExplainImage(
      "slurmstepd-n1: error: pyxis: --container-mounts: source path does not exist: /data\n");
  EXPECT_EQ(trouble.failure_class, v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(RemedyOf(trouble), HasSubstr("mounts"));
  EXPECT_THAT(trouble.words, ElementsAre(HasSubstr("does not exist: /data")));
}

TEST(ExplainImageTest, AClusterWithoutPyxisIsNamed) {
  const ImageTrouble trouble =
      ExplainImage("srun: unrecognized option '--container-image=/x.sqsh'\nTry \"srun --help\"\n");
  EXPECT_EQ(trouble.failure_class, v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(RemedyOf(trouble), HasSubstr("Pyxis"));
}

TEST(ExplainImageTest, AClusterWithoutEnrootIsNamed) {
  const ImageTrouble trouble = ExplainImage(
      "muster: image: slurmstepd-n1: error: execve(): enroot: No such file or directory\n"
      "muster: image: srun: error: n1: task 0: Exited with exit code 2\n");
  EXPECT_EQ(trouble.failure_class, v1::FAILURE_CLASS_CONFIG);
  EXPECT_EQ(trouble.code, v1::FAILURE_CODE_NO_CONTAINERS);
  EXPECT_THAT(trouble.meaning, HasSubstr("has no enroot"));
}

TEST(ExplainImageTest, AnImageWithoutBashIsNamed) {
  const ImageTrouble trouble =
      ExplainImage("slurmstepd-n1: error: execve(): /bin/bash: No such file or directory\n");
  EXPECT_THAT(RemedyOf(trouble), HasSubstr("bash"));
}

TEST(ExplainImageTest, OnlyWhatTheRegistryOrTheNetworkDidIsWorthAnotherTry) {
  const std::pair<const char*, bool> cases[] = {
      {"[ERROR] URL https://r/v2/x returned error code: 503 Service Unavailable", true},
      {"[ERROR] URL https://r/v2/x returned error code: 429 Too Many Requests", true},
      {"curl: (7) Failed to connect to r port 443: Connection refused", true},
      {"curl: (6) Could not resolve host: r", true},
      {"[ERROR] Checksum mismatch", true},
      {"[ERROR] URL https://r/v2/x returned error code: 401 Unauthorized", false},
      {"[ERROR] URL https://r/v2/x returned error code: 404 Not Found", false},
      {"[ERROR] Invalid image reference: docker://R", false},
      {"something new", false},
  };
  for (const auto& [words, retriable] : cases) {
    EXPECT_EQ(ExplainImage(std::string("slurmstepd-n1: error: pyxis: ") + words + "\n").retriable,
              retriable)
        << words;
  }
}

TEST(ExplainImageTest, AConversionThatWasKilledSaysByWhomAsFarAsIsKnown) {
  using Cause = ExitRecord::Cause;
  const struct {
    Cause cause;
    JobPhase conversion;
    const char* meaning;
    const char* remedy;
    v1::FailureClass failure_class;
    bool is_retriable;
  } cases[] = {
      {Cause::kKilled, JobPhase::kUnknown, "was killed", "killed again", v1::FAILURE_CLASS_INFRA,
       true},
      {Cause::kKilled, JobPhase::kOutOfMemory, "more memory", "slurm.conversion_memory",
       v1::FAILURE_CLASS_INFRA, false},
      {Cause::kOutOfMemory, JobPhase::kFailed, "more memory", "slurm.conversion_memory",
       v1::FAILURE_CLASS_INFRA, false},
      {Cause::kConversion, JobPhase::kOutOfMemory, "more memory", "slurm.conversion_memory",
       v1::FAILURE_CLASS_INFRA, false},
      {Cause::kConversion, JobPhase::kFailed, "enroot could not", "words of its node",
       v1::FAILURE_CLASS_IMAGE, false},
      {Cause::kStopped, JobPhase::kUnknown, "was stopped", "comes to its time limit",
       v1::FAILURE_CLASS_IMAGE, true},
      {Cause::kStopped, JobPhase::kFailed, "was killed", "killed again", v1::FAILURE_CLASS_INFRA,
       true},
      {Cause::kStopped, JobPhase::kOutOfMemory, "more memory", "slurm.conversion_memory",
       v1::FAILURE_CLASS_INFRA, false},
      {Cause::kStopped, JobPhase::kTimeout, "its time limit", "conversion_time_limit",
       v1::FAILURE_CLASS_IMAGE, true},
      {Cause::kStopped, JobPhase::kCancelled, "was canceled", "Submit the job again.",
       v1::FAILURE_CLASS_IMAGE, true},
      {Cause::kStopped, JobPhase::kNodeFail, "the node of its", "Submit the job again.",
       v1::FAILURE_CLASS_INFRA, true},
      {Cause::kStopped, JobPhase::kPreempted, "was preempted", "Submit the job again.",
       v1::FAILURE_CLASS_INFRA, true},
  };
  for (const auto& c : cases) {
    const ImageTrouble trouble = ExplainImage("", c.cause, c.conversion);
    EXPECT_EQ(trouble.code, v1::FAILURE_CODE_IMAGE_NOT_CONVERTED) << c.meaning;
    EXPECT_THAT(trouble.meaning, HasSubstr(c.meaning));
    EXPECT_EQ(trouble.failure_class, c.failure_class) << c.meaning;
    EXPECT_EQ(trouble.retriable, c.is_retriable) << c.meaning;
    EXPECT_THAT(RemedyOf(trouble), HasSubstr(c.remedy)) << c.meaning;
  }
}

TEST(ExplainImageTest, OfAKilledConversionTheLineThatSaysSoIsQuoted) {
  const ImageTrouble trouble = ExplainImage(
      "muster: image: [INFO] Creating squashfs filesystem...\n"
      "muster: image: Parallel mksquashfs: Using 4 processors\n"
      "muster: image: srun: error: n1: task 0: Killed\n"
      "muster: image: the conversion was killed by signal 9\n",
      ExitRecord::Cause::kKilled);
  EXPECT_THAT(trouble.words, ElementsAre("srun: error: n1: task 0: Killed",
                                         "the conversion was killed by signal 9"));
}

TEST(ExplainImageTest, WordsThatNobodyKnowsAreQuotedAsTheyAre) {
  const ImageTrouble trouble = ExplainImage("slurmstepd-n1: error: pyxis: something new\n");
  EXPECT_EQ(trouble.code, v1::FAILURE_CODE_CONTAINER_NOT_STARTED);
  EXPECT_THAT(trouble.words, ElementsAre("something new"));
  EXPECT_THAT(ExplainImage("").words, IsEmpty());
}

}  // namespace
}  // namespace muster::slurm

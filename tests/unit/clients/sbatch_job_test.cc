#include "clients/cpp/slurm/sbatch_job.h"

#include "contract/slurm_only.h"
#include "contract/slurm_options.h"
#include "contract/spank_options.h"
#include "digest/sha256.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::client::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using namespace std::string_literals;

const std::map<std::string, std::string> kShell = {{"HOME", "/home/ann"}, {"LR", "0.1"}};

absl::StatusOr<SbatchJob> TryMap(const std::string& directives,
                                 const std::vector<std::string>& words = {"sub/run.sh"}) {
  const auto submission = ReadSbatch(words, {}, "#!/bin/bash\n" + directives + "\ntrue\n");
  if (!submission.ok()) return submission.status();
  return MapSbatch(*submission, {"/home/ann/work", "sub/run.sh", {kShell}});
}

SbatchJob Mapped(const std::string& directives) {
  const auto job = TryMap(directives);
  EXPECT_TRUE(job.ok()) << directives << job.status();
  return job.value_or(SbatchJob());
}

std::string RefusalOf(const std::string& directives) {
  const auto job = TryMap(directives);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument) << directives;
  return std::string(job.status().message());
}

// Returns the extra options that Slurm is told of.
std::vector<std::string> ForSlurm(const v1::SlurmOptions& slurm) {
  std::vector<std::string> options(slurm.extra_options().begin(), slurm.extra_options().end());
  std::erase_if(options, contract::IsForMuster);
  return options;
}

TEST(MapSbatchTest, AScriptOfTheManualRunsAnywhere) {
  const SbatchJob job = Mapped(
      "#SBATCH --job-name=train\n#SBATCH --nodes=1\n#SBATCH --cpus-per-task=8\n#SBATCH --mem=10GB\n"
      "#SBATCH --gres=gpu:h100:1\n#SBATCH --time=1-02:00\n"
      "#SBATCH --export=NONE --chdir=/data");
  EXPECT_THAT(job.notes, IsEmpty());
  EXPECT_EQ(contract::WhySlurmOnly(job.spec), "");
  EXPECT_EQ(job.spec.name(), "train");
  EXPECT_EQ(job.spec.nodes(), 1u);
  EXPECT_EQ(job.spec.resources().cpu_millis(), 8000u);
  EXPECT_EQ(job.spec.resources().memory_bytes(), uint64_t{10} << 30);
  EXPECT_EQ(job.spec.resources().gpus(0).type(), "h100");
  EXPECT_EQ(job.spec.resources().gpus(0).count_millis(), 1000u);
  EXPECT_EQ(job.spec.time_limit().seconds(), 26 * 3600);
  EXPECT_EQ(job.spec.working_directory(), "/data");
  EXPECT_FALSE(contract::IsDirectoryImplied(job.spec));
  EXPECT_THAT(job.spec.command().script(), HasSubstr("\ntrue\n"));
}

TEST(MapSbatchTest, WithoutOptionsItIsAsWithSbatch) {
  const SbatchJob job = Mapped("");
  EXPECT_EQ(job.spec.name(), "run.sh");
  EXPECT_EQ(job.spec.working_directory(), "/home/ann/work");
  EXPECT_TRUE(contract::IsDirectoryImplied(job.spec));
  EXPECT_EQ(contract::WhySlurmOnly(job.spec), "");
  EXPECT_EQ(job.spec.slurm().batch_script().output(), "slurm-%j.out");
  EXPECT_FALSE(job.spec.has_time_limit());
  EXPECT_EQ(Mapped("#SBATCH -D data").spec.working_directory(), "/home/ann/work/data");
}

TEST(MapSbatchTest, OnlyAScriptThatMustNotBeRequeuedGetsOneRun) {
  EXPECT_EQ(Mapped("#SBATCH --no-requeue").spec.retry().max_runs(), 1u);
  EXPECT_EQ(Mapped("#SBATCH --requeue --no-requeue").spec.retry().max_runs(), 1u);
  for (const char* directives : {"", "#SBATCH --requeue", "#SBATCH --no-requeue --requeue"})
    EXPECT_FALSE(Mapped(directives).spec.has_retry()) << directives;
}

TEST(MapSbatchTest, OptionsThatHaveAFieldGoThereAndOthersToSlurmAsTheyAre) {
  const SbatchJob job = Mapped(
      "#SBATCH -p gpu -A lab -q high --no-requeue --exclusive -d afterok:12\n#SBATCH "
      "--begin=now+1hour "
      "--switches=1\n#SBATCH --contiguous --nice -L matlab:2 --mail-type=END --signal=B:USR1@60\n"
      "#SBATCH -e err -i in --open-mode=append -M lab,far");
  const v1::SlurmOptions& slurm = job.spec.slurm();
  EXPECT_EQ(job.spec.placement().pool(), "gpu");
  EXPECT_EQ(slurm.account(), "lab");
  EXPECT_EQ(slurm.qos(), "high");
  EXPECT_TRUE(slurm.has_requeue());
  EXPECT_FALSE(slurm.requeue());
  EXPECT_EQ(job.spec.retry().max_runs(), 1u) << "Muster starts it once, too";
  EXPECT_TRUE(slurm.exclusive());
  EXPECT_EQ(slurm.dependency(), "afterok:12");
  EXPECT_EQ(slurm.nice(), 100u);
  EXPECT_EQ(slurm.licenses(), "matlab:2");
  EXPECT_EQ(slurm.mail_type(), "END");
  EXPECT_EQ(slurm.signal(), "B:USR1@60");
  EXPECT_THAT(ForSlurm(slurm),
              UnorderedElementsAre("--begin=now+1hour", "--switches=1", "--contiguous"));
  EXPECT_EQ(slurm.batch_script().error(), "err");
  EXPECT_EQ(slurm.batch_script().input(), "in");
  EXPECT_TRUE(slurm.batch_script().append());
  EXPECT_THAT(job.spec.placement().clusters(), ElementsAre("lab", "far"));
  EXPECT_NE(contract::WhySlurmOnly(job.spec), "");
}

TEST(MapSbatchTest, AmountsAreThoseOfOneNodeWhereTheShapeIsFixed) {
  v1::JobSpec spec = Mapped("#SBATCH -N2 --ntasks-per-node=4 -c3 --mem-per-cpu=1G").spec;
  EXPECT_EQ(spec.nodes(), 2u);
  EXPECT_EQ(spec.slurm().tasks_per_node(), 4u);
  EXPECT_EQ(spec.resources().cpu_millis(), 12000u);
  EXPECT_EQ(spec.resources().memory_bytes(), uint64_t{12} << 30);
  spec = Mapped("#SBATCH -N1 -n4 --gpus-per-task=2").spec;
  EXPECT_EQ(spec.slurm().tasks_per_node(), 4u);
  EXPECT_EQ(spec.resources().gpus(0).count_millis(), 8000u);
  spec = Mapped("#SBATCH -G4 --mem-per-gpu=2G --cpus-per-gpu=3").spec;
  EXPECT_EQ(spec.resources().memory_bytes(), uint64_t{8} << 30);
  EXPECT_EQ(spec.resources().cpu_millis(), 12000u);
  EXPECT_EQ(Mapped("#SBATCH --gres=gpu:0").spec.resources().gpus_size(), 0);
  EXPECT_EQ(contract::WhySlurmOnly(Mapped("#SBATCH -N1-2").spec), "") << "one is enough";
}

TEST(MapSbatchTest, TasksThatSlurmSpreadsStayAsTheyWereWritten) {
  v1::JobSpec spec = Mapped("#SBATCH -n64 -c2 --mem-per-cpu=1G --gpus-per-task=1").spec;
  EXPECT_EQ(spec.nodes(), 1u);
  EXPECT_EQ(spec.resources().cpu_millis(), 2000u) << "of one task";
  EXPECT_EQ(spec.resources().memory_bytes(), 0u);
  EXPECT_EQ(spec.resources().gpus_size(), 0);
  EXPECT_THAT(ForSlurm(spec.slurm()),
              UnorderedElementsAre("--ntasks=64", "--cpus-per-task=2", "--mem-per-cpu=1G",
                                   "--gpus-per-task=1"));
  spec = Mapped("#SBATCH -N2-4 --mem=4G").spec;
  EXPECT_EQ(spec.nodes(), 2u);
  EXPECT_EQ(spec.resources().memory_bytes(), uint64_t{4} << 30);
  EXPECT_THAT(ForSlurm(spec.slurm()), ElementsAre("--nodes=2-4", "--mem=4G"));
  EXPECT_THAT(ForSlurm(Mapped("#SBATCH -N2 -n5 --gpus=a100:8").spec.slurm()),
              UnorderedElementsAre("--nodes=2", "--ntasks=5", "--gpus=a100:8"));
}

TEST(MapSbatchTest, SlurmGetsTheAllocationAsItWasWrittenAndTheFieldsPlaceTheJob) {
  EXPECT_THAT(ForSlurm(Mapped("").spec.slurm()), IsEmpty());
  v1::JobSpec spec = Mapped("#SBATCH -N1-3 --mem=1G --gres=gpu:2 -n1 -c 2").spec;
  EXPECT_THAT(ForSlurm(spec.slurm()), ElementsAre("--nodes=1-3", "--mem=1G", "--gres=gpu:2",
                                                  "--ntasks=1", "--cpus-per-task=2"));
  EXPECT_EQ(spec.nodes(), 1u);
  EXPECT_EQ(contract::WhySlurmOnly(spec), "");
  EXPECT_THAT(ForSlurm(Mapped("#SBATCH -N -4").spec.slurm()), ElementsAre("--nodes=1-4"));
  spec = Mapped("#SBATCH -G4 --gres=gpu:2 --gpus-per-node=2").spec;
  EXPECT_THAT(ForSlurm(spec.slurm()), ElementsAre("--gpus=4", "--gres=gpu:2", "--gpus-per-node=2"));
  spec = Mapped("#SBATCH -w n[1-2],n4").spec;
  EXPECT_THAT(ForSlurm(spec.slurm()), IsEmpty());
  EXPECT_EQ(spec.nodes(), 3u);
  EXPECT_EQ(Mapped("#SBATCH -w n1,n2 -N1").spec.nodes(), 1u);
  spec = Mapped("#SBATCH -n6 --mem-per-cpu=1G -c2").spec;
  EXPECT_THAT(ForSlurm(spec.slurm()),
              ElementsAre("--ntasks=6", "--mem-per-cpu=1G", "--cpus-per-task=2"));
  EXPECT_EQ(contract::WhySlurmOnly(spec), "the batch script has --ntasks=6");
}

TEST(MapSbatchTest, EachMailTypeAddsToThoseBefore) {
  EXPECT_EQ(Mapped("#SBATCH --mail-type=begin,End,soon\n").spec.slurm().mail_type(), "BEGIN,END");
  EXPECT_EQ(Mapped("#SBATCH --mail-type=END,NONE").spec.slurm().mail_type(), "NONE");
  EXPECT_EQ(Mapped("#SBATCH --mail-type=NONE --mail-type=END").spec.slurm().mail_type(), "END");
  EXPECT_EQ(Mapped("#SBATCH --mail-type=END --mail-type=NONE").spec.slurm().mail_type(), "END");
  const auto both = TryMap("#SBATCH --mail-type=END", {"--mail-type=FAIL", "sub/run.sh"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->spec.slurm().mail_type(), "END,FAIL");
  EXPECT_THAT(RefusalOf("#SBATCH --mail-type=soon"), HasSubstr("--mail-type: \"soon\" (line 2)"));
}

TEST(MapSbatchTest, TheLastOptionAboutSharingNodesCounts) {
  const v1::SlurmOptions whole = Mapped("#SBATCH -s --exclusive=user --exclusive").spec.slurm();
  EXPECT_TRUE(whole.exclusive());
  EXPECT_THAT(ForSlurm(whole), IsEmpty());
  const v1::SlurmOptions shared = Mapped("#SBATCH --exclusive -s").spec.slurm();
  EXPECT_FALSE(shared.exclusive());
  EXPECT_THAT(ForSlurm(shared), ElementsAre("--oversubscribe"));
  EXPECT_THAT(ForSlurm(Mapped("#SBATCH --exclusive --exclusive=user").spec.slurm()),
              ElementsAre("--exclusive=user"));
}

TEST(MapSbatchTest, APriorityHasNoEffectAndARemark) {
  const SbatchJob job = Mapped("#SBATCH --priority=5");
  EXPECT_THAT(ForSlurm(job.spec.slurm()), IsEmpty());
  EXPECT_THAT(job.notes, ElementsAre(HasSubstr("--priority has no effect")));
}

TEST(MapSbatchTest, GpusOfSeveralTypesAreForSlurmAlone) {
  v1::JobSpec spec = Mapped("#SBATCH --gres=gpu:a100:1,gpu:h100:2,nvme:1").spec;
  EXPECT_EQ(spec.resources().gpus_size(), 0);
  EXPECT_EQ(spec.slurm().gres(), "nvme:1");
  EXPECT_THAT(contract::WhySlurmOnly(spec), HasSubstr("--gres=gpu:a100:1,gpu:h100:2,nvme:1"));
  spec = Mapped("#SBATCH -G h100:1,h100:2").spec;
  EXPECT_EQ(spec.resources().gpus(0).count_millis(), 2000u) << "the last one counts for Slurm";
  EXPECT_THAT(ForSlurm(spec.slurm()), ElementsAre("--gpus=h100:1,h100:2"));
}

TEST(MapSbatchTest, OvercommitTakesOneCoreForAllTasksOfANode) {
  EXPECT_EQ(Mapped("#SBATCH -O -n20 -N1").spec.resources().cpu_millis(), 1000u);
}

TEST(MapSbatchTest, AnArrayIsNoSingleton) {
  EXPECT_EQ(Mapped("#SBATCH -d singleton").spec.slurm().dependency(), "singleton");
  EXPECT_THAT(RefusalOf("#SBATCH -a 1-3 -d singleton"), HasSubstr("--dependency: \"singleton\""));
}

TEST(MapSbatchTest, WhatMeansAllOrNoneIsLeftToSlurm) {
  const SbatchJob job = Mapped("#SBATCH --gres=gpu:2,nvme:1 --mem=0 -t UNLIMITED");
  EXPECT_EQ(job.spec.slurm().gres(), "nvme:1");
  EXPECT_EQ(job.spec.resources().gpus(0).count_millis(), 2000u);
  EXPECT_THAT(ForSlurm(job.spec.slurm()),
              UnorderedElementsAre("--gres=gpu:2,nvme:1", "--mem=0", "--time=0"));
}

TEST(MapSbatchTest, VariablesTravelInAFileThatTheJobNames) {
  const SbatchJob job = Mapped("#SBATCH --export=A=1,B=x=y,LR,NOSUCH --get-user-env=9");
  EXPECT_THAT(job.notes, IsEmpty());
  EXPECT_TRUE(job.spec.env().empty()) << "everybody who sees the job sees these";
  EXPECT_EQ(job.shell_file,
            "A=1\0B=x=y\0LR=0.1\0SLURM_EXPORT_ENV=A=1,B=x=y,LR,NOSUCH\0SLURM_GET_USER_ENV=1\0"s);
  const v1::ShellEnvironment& shell = job.spec.slurm().batch_script().environment();
  EXPECT_EQ(shell.file_sha256(), Sha256Of(job.shell_file));
  EXPECT_THAT(shell.named(), ElementsAre("A", "B", "LR"));
  EXPECT_EQ(shell.login_timeout().seconds(), 9);
  EXPECT_EQ(Mapped("").shell_file, "LR=0.1\0"s);
  EXPECT_EQ(contract::WhySlurmOnly(job.spec), "");
}

TEST(MapSbatchTest, AScriptWithoutVariablesHasNoFile) {
  const auto submission = ReadSbatch({"run.sh"}, {}, "#!/bin/sh\ntrue\n");
  const auto job = MapSbatch(*submission, {"/home/ann", "run.sh", {{{"HOME", "/home/ann"}}}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(job->spec.slurm().batch_script().has_environment());
}

TEST(MapSbatchTest, TheScriptsArgumentsAndOptionsOfTheCommandLineCount) {
  const auto job = TryMap("#SBATCH -t5", {"-t", "7", "--parsable", "run.sh", "x", "-n"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.time_limit().seconds(), 420);
  EXPECT_THAT(job->spec.command().script_arguments(), ElementsAre("x", "-n"));
}

TEST(MapSbatchTest, APartitionIsAPoolOfAnyClusterAndAChoiceOfSeveralIsSlurmsAlone) {
  const SbatchJob one = Mapped("#SBATCH -p team-a");
  EXPECT_EQ(one.spec.placement().pool(), "team-a");
  EXPECT_EQ(contract::WhySlurmOnly(one.spec), "");
  const SbatchJob several = Mapped("#SBATCH -p gpu,cpu");
  EXPECT_EQ(several.spec.placement().pool(), "");
  EXPECT_EQ(contract::WhySlurmOnly(several.spec), "the batch script has --partition=gpu,cpu");
}

TEST(MapSbatchTest, WhatIsNotTakenIsRefusedByNameWithItsPlaceAndARemedy) {
  const std::string said = RefusalOf(
      "#SBATCH --array=9-1\n#SBATCH --uid=0 --nosuch=1\n#SBATCH --propagate=x\n#PBS -l "
      "walltime=1\n#SBATCH --container=a");
  for (const char* words :
       {"--array: \"9-1\" (line 2)", "--uid=0 (line 3): ", "the user of the cluster's agent",
        "--nosuch=1 (line 3): unrecognized option", "--propagate: \"x\" (line 4)",
        "#PBS -l walltime=1 (line 5)", "--ignore-pbs",
        "--container=a (line 6): use --container-image, on clusters with Pyxis"}) {
    EXPECT_THAT(said, HasSubstr(words));
  }
}

TEST(MapSbatchTest, WhereTheUserStoodGoesAlongIfTheScriptStartsElsewhere) {
  const std::string stood = "SLURM_SUBMIT_DIR=/home/ann/work"s + '\0';
  EXPECT_THAT(Mapped("#SBATCH -D /data").shell_file, HasSubstr(stood));
  EXPECT_THAT(Mapped("").shell_file, Not(HasSubstr("SLURM_SUBMIT_DIR")));
  const auto submission = ReadSbatch({"run.sh"}, {}, "#!/bin/sh\n");
  ASSERT_TRUE(submission.ok());
  SubmitEnvironment nested{kShell};
  nested.variables["SLURM_SUBMIT_DIR"] = "/of/another/job";
  const auto job = MapSbatch(*submission, {"/home/ann/work", "run.sh", nested});
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(job->shell_file, Not(HasSubstr("SLURM_SUBMIT_DIR")));
}

TEST(MapSbatchTest, AContainerIsTheJobsImageWithItsMountsAndOptions) {
  const v1::JobSpec spec =
      Mapped(
          "#SBATCH --container-image=nvcr.io\\#nvidia/pytorch:24.01 --container-save=out.sqsh\n"
          "#SBATCH --container-mounts=/data,./in:/in:ro,/tmp:/scratch:rw --container-name=torch\n"
          "#SBATCH --container-workdir=/in --container-env=A,B --container-mount-home\n"
          "#SBATCH --no-container-remap-root --container-entrypoint --container-readonly\n"
          "#SBATCH --signal=B:USR1")
          .spec;
  EXPECT_EQ(spec.image(), "nvcr.io#nvidia/pytorch:24.01");
  ASSERT_EQ(spec.mounts_size(), 3);
  EXPECT_EQ(spec.mounts(0).target(), "/data");
  EXPECT_EQ(spec.mounts(1).source(), "/home/ann/work/./in");
  EXPECT_TRUE(spec.mounts(1).read_only());
  EXPECT_FALSE(spec.mounts(2).read_only());
  const v1::SlurmContainer& container = spec.slurm().container();
  EXPECT_EQ(container.name(), "torch");
  EXPECT_THAT(container.env(), ElementsAre("A", "B"));
  EXPECT_TRUE(container.mount_home());
  EXPECT_TRUE(container.has_remap_root() && !container.remap_root());
  EXPECT_TRUE(container.entrypoint());
  EXPECT_THAT(ForSlurm(spec.slurm()),
              UnorderedElementsAre("--container-save=/home/ann/work/out.sqsh",
                                   "--container-workdir=/in", "--container-readonly"));
  EXPECT_EQ(Mapped("#SBATCH --container-image=./a.sqsh").spec.image(), "/home/ann/work/./a.sqsh");
}

TEST(MapSbatchTest, AVariableOfPyxisGivesWayToItsOptionOnOrOff) {
  const auto spec = [](const std::string& directives) {
    const auto submission = ReadSbatch(
        {"run.sh"}, {{"PYXIS_CONTAINER_IMAGE", "of:variable"}, {"PYXIS_CONTAINER_MOUNT_HOME", "1"}},
        "#!/bin/bash\n" + directives + "\n");
    return MapSbatch(*submission, {"/", "run.sh", {}})->spec;
  };
  EXPECT_EQ(spec("").image(), "of:variable");
  EXPECT_TRUE(spec("").slurm().container().mount_home());
  EXPECT_EQ(spec("#SBATCH --container-image=a:1").image(), "a:1");
  const v1::SlurmContainer off = spec("#SBATCH --no-container-mount-home").slurm().container();
  EXPECT_TRUE(off.has_mount_home() && !off.mount_home());
}

TEST(MapSbatchTest, AContainerThatCannotBeHadIsRefusedByItsOption) {
  const std::string image = "#SBATCH --container-image=a:1 ";
  for (const auto& [directive, says] : std::initializer_list<std::pair<std::string, std::string>>{
           {"#SBATCH --container-name=a", "give --container-image, too"},
           {"#SBATCH --container-image=", "name an image"},
           {image + "--container-mounts=tmpfs:/tmp", "for tmpfs and umount"},
           {image + "--container-mounts=/a:b", "an absolute path of the container"},
           {image + "--container-mounts=/a:/b:rprivate", "only ro and rw"},
           {image + "--container-name=a:exec", "leave the part behind ':' out"},
           {image + "--container-workdir=a", "an absolute path of the container"},
           {image + "--container-writable --container-readonly", "Pyxis takes one of them"},
           {image + "--signal=USR1", "with B: in front only"}}) {
    EXPECT_THAT(RefusalOf(directive), HasSubstr(says)) << directive;
  }
  EXPECT_THAT(Mapped("#SBATCH --container-readonly").notes,
              ElementsAre("--container-readonly (line 2) has no effect without --container-image"));
}

TEST(MapSbatchTest, OptionsOfPluginsThatAClusterAllowsAreTakenTheStrongerOneLast) {
  auto submission =
      ReadSbatch({"--flavour=rose", "run.sh"}, {},
                 "#!/bin/bash\n#SBATCH --flavour mint --mild\n#SBATCH --nosuch=1\ntrue\n");
  ASSERT_TRUE(submission.ok());
  EXPECT_TRUE(MayHaveSpankOptions(*submission));
  TakeSpankOptions({"flavour", "mild"}, &*submission);
  EXPECT_THAT(submission->spank_options, ElementsAre("--flavour=rose", "--mild"));
  EXPECT_THAT(submission->options.not_understood, ElementsAre("--nosuch=1 (line 3)"));
  submission->options.not_understood.clear();
  EXPECT_FALSE(MayHaveSpankOptions(*submission));
  const auto job = MapSbatch(*submission, {"/", "run.sh", {}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(ForSlurm(job->spec.slurm()), ElementsAre("--flavour=rose", "--mild"));
}

TEST(MapSbatchTest, NoOptionOfSbatchMayBeAPlugins) {
  for (const Option& option : SbatchOptions()) {
    EXPECT_FALSE(contract::IsSpankName(option.name)) << option.name;
    EXPECT_TRUE(option.other_name.empty() || !contract::IsSpankName(option.other_name));
  }
}

TEST(MapSbatchTest, ANameThatIsTooLongIsCutBetweenCharacters) {
  const SbatchJob job = Mapped("#SBATCH -J " + std::string(127, 'x') + "\xc3\xa4y");
  EXPECT_EQ(job.spec.name(), std::string(127, 'x'));
  ASSERT_EQ(job.notes.size(), 1u);
  EXPECT_THAT(job.notes[0], HasSubstr("name is cut to 128 bytes"));
  EXPECT_THAT(Mapped("#SBATCH -J " + std::string(128, 'x')).notes, IsEmpty());
}

TEST(MapSbatchTest, AnArrayHasTasksAndAnOutputForEach) {
  const SbatchJob job = Mapped("#SBATCH -a 1,3");
  ASSERT_EQ(job.tasks.size(), 2u);
  EXPECT_EQ(job.tasks[1].id, 3u);
  EXPECT_EQ(job.spec.slurm().batch_script().output(), "slurm-%A_%a.out");
  EXPECT_EQ(Mapped("#SBATCH -a 1,3 -o x").spec.slurm().batch_script().output(), "x");
  EXPECT_THAT(Mapped("#SBATCH --array=''").tasks, IsEmpty());
}

TEST(MapSbatchTest, AnArraysNumberThatIsGivenToSlurmGetsARemark) {
  for (const char* line :
       {"scancel ${SLURM_ARRAY_JOB_ID}_5", "sbatch -d afterok:$SLURM_ARRAY_JOB_ID next.sh"}) {
    EXPECT_THAT(Mapped(fmt::format("#SBATCH -a 1,3\n{}", line)).notes,
                ElementsAre(HasSubstr("SLURM_ARRAY_JOB_ID is Muster's number")));
    EXPECT_THAT(Mapped(line).notes, IsEmpty()) << "it is no array";
    EXPECT_THAT(Mapped(fmt::format("#SBATCH -a 1,3\n# {}", line)).notes, IsEmpty());
  }
  EXPECT_THAT(Mapped("#SBATCH -a 1,3\nscancel 5; echo x\necho $SLURM_ARRAY_JOB_ID").notes,
              IsEmpty());
}

TEST(MapSbatchTest, AHeldJobIsHeldFromTheStart) {
  EXPECT_TRUE(contract::IsHeldFromTheStart(Mapped("#SBATCH -H").spec));
  EXPECT_FALSE(contract::IsHeldFromTheStart(Mapped("").spec));
  EXPECT_EQ(contract::WhySlurmOnly(Mapped("#SBATCH --hold").spec), "");
}

TEST(MapSbatchTest, EveryOptionOfSbatchIsMappedOrRefusedByName) {
  for (const Option& option : SbatchOptions()) {
    if (option.name == "wrap") continue;
    const std::string value = option.argument == Option::Argument::kRequired ? "=1" : "";
    const auto job = TryMap(fmt::format("#SBATCH --{}{}", option.name, value));
    if (job.ok()) continue;
    EXPECT_THAT(std::string(job.status().message()), HasSubstr("--" + std::string(option.name)));
  }
}

TEST(MapSbatchTest, AValueThatCannotBeReadIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"-t soon", "--time: \"soon\" (line 2)"},
      {"-N many", "--nodes: \"many\""},
      {"-N4-2", "--nodes"},
      {"-c 0", "--cpus-per-task: \"0\""},
      {"-n -3", "--ntasks: \"-3\""},
      {"--mem=1.5G", "--mem: \"1.5G\""},
      {"--mem=1G --mem-per-cpu=1G", "--mem-per-cpu"},
      {"--gpus=2,h100:2", "--gpus"},
      {"--gres=gpu:1,gpu:b:1", "--gres"},
      {"--gres=", "--gres"},
      {"--partition=", "--partition: \"\""},
      {"--nodelist=", "--nodelist: \"\""},
      {"--gres=gpu:x:y", "--gres"},
      {"--nice=-5", "--nice"},
      {"--open-mode=x", "--open-mode"},
  };
  for (const auto& [directive, words] : cases) {
    EXPECT_THAT(RefusalOf(std::string("#SBATCH ") + directive), HasSubstr(words)) << directive;
  }
}

RC_GTEST_PROP(MapSbatchTest, AnyScriptIsMappedOrRefused, ()) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "\n#SBATCH ", " -N", " -n",
      " --time=", " --mem=", " --gres=", " --gpus=", " --export=", "gpu", ":", "4", "-", ",", "G",
      "99999999999", "h100", " --nice=", "\xff", " --mem-per-gpu="});
  std::string text;
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) text += one;
  const auto job = TryMap(text);
  if (!job.ok()) {
    RC_ASSERT(job.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  RC_ASSERT(job->spec.nodes() >= 1u);
}

}  // namespace
}  // namespace muster::client::slurm

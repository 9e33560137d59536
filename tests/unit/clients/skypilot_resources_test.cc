// Tests `resources` of a SkyPilot task: every form, and the errors for impossible ones.
#include <string>

#include "tests/unit/clients/skypilot_fixture.h"

namespace muster::client::skypilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The fields stand in a block under `resources`, from line 4 on, two blanks in.
std::string TaskWith(std::string fields) {
  for (size_t at = fields.find('\n'); at != fields.npos; at = fields.find('\n', at + 1)) {
    fields.replace(at, 1, "\n  ");
  }
  return "num_nodes: 1\nrun: x\nresources:\n  " + fields + "\n";
}

constexpr const char* kTask = "nodes: 1 command { script: '<bash>x' } ";

class SkyPilotResources : public ::testing::TestWithParam<Row> {};

TEST_P(SkyPilotResources, AreReadAsSkyPilotReadsThem) {
  ExpectRow(GetParam(), TaskWith(GetParam().yaml), kTask);
}

#define H100(MILLIS) "resources { gpus { type: 'H100' count_millis: " #MILLIS " } }"

INSTANTIATE_TEST_SUITE_P(
    Accelerators, SkyPilotResources,
    ::testing::Values(
        Row{"Name", "accelerators: H100", H100(1000)},
        Row{"NameAndCount", "accelerators: H100:4", H100(4000)},
        Row{"Mapping", "accelerators: {H100: 4}", H100(4000)},
        Row{"MappingWithoutBlank", "accelerators: {H100:4}", H100(4000)},
        Row{"MappingWithoutCount", "accelerators: {H100: }", H100(1000)},
        Row{"Gpus", "infra: k8s/a\ngpus: H100:2",
            "placement { clusters: 'a' } resources { gpus { type: 'H100' count_millis: 2000 } }"},
        Row{"Both", "accelerators: H100\ngpus: H100",
            "t.yaml:5:3: resources.gpus: means the same as \"accelerators\""},
        Row{"Null", "accelerators: null", ""}, Row{"List", "accelerators: [H100:4]", H100(4000)},
        Row{"ListWithDuplicates", "accelerators: [H100:4, H100:4]", H100(4000)},
        Row{"ListOfMappings", "accelerators:\n- H100: 4",
            "t.yaml:5:5: resources.accelerators[0]: expected a text in a list"},
        Row{"EmptyList", "accelerators: []", "t.yaml:4:17: resources.accelerators: is an empty"},
        Row{"Set", "accelerators: !!set {H100}", "t.yaml:4:17: the tag |set"},
        Row{"WholeFloat", "accelerators: H100:2.0", H100(2000)},
        Row{"WholeFloatInMapping", "accelerators: {H100: 2.0}", H100(2000)},
        Row{"Exponent", "accelerators: H100:1e1", H100(10000)},
        Row{"Fraction", "accelerators: H100:0.5", H100(500)},
        Row{"FractionInMapping", "accelerators: {H100: 0.25}", H100(250)},
        Row{"FractionAboveOne", "accelerators: H100:1.5",
            "t.yaml:4:17: resources.accelerators: \"H100:1.5\" asks for more than one GPU and a "
            "part|ask for whole ones, or for less than one"},
        Row{"FractionTooFine", "accelerators: H100:0.3333", "t.yaml:4:17: |in thousandths"},
        Row{"NotANumber", "accelerators: H100:nan", "t.yaml:4:17: |not above 0"},
        Row{"Infinite", "accelerators: {H100: .inf}", "t.yaml:4:17: |not above 0"},
        Row{"None", "accelerators: H100:0", "t.yaml:4:17: |not above 0"},
        Row{"Negative", "accelerators: {H100: -1}", "t.yaml:4:17: |not above 0"},
        Row{"TooMany", "accelerators: H100:5000", "t.yaml:4:17: |1000 on each node is the most"},
        Row{"CountInWords", "accelerators: H100:four",
            "t.yaml:4:17: resources.accelerators: \"H100:four\" is not TYPE or TYPE:COUNT"},
        Row{"CountLeftOut", "accelerators: 'H100:'", "t.yaml:4:17: |is not TYPE or TYPE:COUNT"},
        Row{"CountInQuotes", "accelerators: {H100: '4'}", "t.yaml:4:17: |write it without quotes"},
        Row{"CountAlone", "accelerators: 4",
            "t.yaml:4:17: resources.accelerators: expected a text, and \"4\""},
        Row{"ByMemory", "accelerators: 80GB",
            "t.yaml:4:17: resources.accelerators: \"80GB\" names GPUs by their memory|H100:4"},
        Row{"ByMemoryOrMore", "accelerators: 80GB+", "t.yaml:4:17: |by their memory"},
        Row{"ByMemoryWithCount", "accelerators: 16GB:4", "t.yaml:4:17: |by their memory"},
        Row{"ByMakerAndMemory", "accelerators: nvidia:80GB+:2", "t.yaml:4:17: |by their memory"},
        Row{"CaseIsKept", "accelerators: h100:1",
            "resources { gpus { type: 'h100' count_millis: 1000 } }"},
        Row{"BlanksAreNotTrimmed", "accelerators: ' H100'",
            "t.yaml:4:17: |does not name a type of GPU"},
        // This is a regular expression for SkyPilot, and a name here.
        Row{"NoPattern", "accelerators: 'H.*'", "t.yaml:4:17: |does not name a type of GPU"},
        Row{"Tpu", "accelerators: tpu-v5e-8",
            "resources { gpus { type: 'tpu-v5e-8' count_millis: 1000 } }"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Amounts, SkyPilotResources,
    ::testing::Values(
        Row{"Cpus", "cpus: 4\nuse_spot: false", "resources { cpu_millis: 4000 }"},
        Row{"PartOfACore", "cpus: 0.5\nports: 1", "resources { cpu_millis: 500 }"},
        Row{"OrMore", "cpus: 4+", "resources { cpu_millis: 4000 }"},
        Row{"PartOrMore", "cpus: '1.5+'", "resources { cpu_millis: 1500 }"},
        Row{"NoCpus", "cpus: 0", "t.yaml:4:9: resources.cpus: \"0\" is not a number|above 0"},
        Row{"NegativeCpus", "cpus: -1", "t.yaml:4:9: resources.cpus: \"-1\""},
        Row{"CpusTimes", "cpus: 4x", "t.yaml:4:9: resources.cpus: \"4x\""},
        Row{"CpusAsList", "cpus: [4]", "t.yaml:4:9: |found a list"},
        Row{"CpusAsTruth", "cpus: yes", "t.yaml:4:9: |found True or False"},
        Row{"MemoryIsGiB", "memory: 16", "resources { memory_bytes: 17179869184 }"},
        Row{"MemoryOrMore", "memory: 32+", "resources { memory_bytes: 34359738368 }"},
        Row{"MemoryInGB", "memory: 32GB+", "resources { memory_bytes: 34359738368 }"},
        Row{"MemoryInMB", "memory: 512MB", "resources { memory_bytes: 536870912 }"},
        Row{"MemoryInSmallLetters", "memory: 512 mb", "resources { memory_bytes: 536870912 }"},
        Row{"MemoryInKI", "memory: 2048KI", "resources { memory_bytes: 2097152 }"},
        Row{"MemoryInTB", "memory: 0.5TB", "resources { memory_bytes: 549755813888 }"},
        Row{"MemoryInPB", "memory: 1PB", "resources { memory_bytes: 1125899906842624 }"},
        Row{"MemoryInPart", "memory: 0.5", "resources { memory_bytes: 536870912 }"},
        Row{"MemoryInG", "memory: 32G", "t.yaml:4:11: resources.memory: \"32G\" is not an amount"},
        Row{"MemoryInGiB", "memory: 32GiB", "t.yaml:4:11: |use a number of GiB"},
        Row{"MemoryPlusInside", "memory: 32+GB", "t.yaml:4:11: |the '+' last"},
        Row{"MemoryTimesCpus", "memory: 4x", "t.yaml:4:11: |is not an amount"},
        Row{"MemoryTooMuch", "memory: 4000000", "t.yaml:4:11: |a plain number is GiB"},
        Row{"NoMemory", "memory: 0", "t.yaml:4:11: |above 0 but on Slurm"},
        Row{"NoMemoryOnSlurm", "infra: slurm/lab\nmemory: 0",
            "placement { clusters: 'lab' } resources { }"}),
    [](const auto& info) { return NameOf(info); });

INSTANTIATE_TEST_SUITE_P(
    Places, SkyPilotResources,
    ::testing::Values(
        Row{"Slurm", "infra: slurm/lab", "placement { clusters: 'lab' }"},
        Row{"SlurmWithPartition", "infra: slurm/lab/gpu",
            "placement { clusters: 'lab' pool: 'gpu' }"},
        Row{"AnySlurm", "infra: slurm", "slurm { }"},
        Row{"AnySlurmByStar", "infra: Slurm/*", "slurm { }"},
        Row{"AnySlurmWithPartition", "infra: slurm/*/gpu", "slurm { } placement { pool: 'gpu' }"},
        Row{"Kubernetes", "infra: kubernetes/lab", "placement { clusters: 'lab' }"},
        Row{"K8s", "infra: K8S/lab", "placement { clusters: 'lab' }"},
        Row{"AnyKubernetes", "infra: k8s", "kubernetes { }"},
        Row{"AllBehindK8sIsTheName", "infra: k8s/my/context", "t.yaml:4:10: |my/context"},
        Row{"Ssh", "infra: ssh/boxes", "placement { clusters: 'boxes' }"},
        Row{"AnySsh", "infra: ssh",
            "t.yaml:4:10: resources.infra: \"ssh\" does not name one|ssh/NAME"},
        Row{"Anything", "infra: '*'", ""}, Row{"Cloud", "infra: aws/us-east-1/us-east-1a", ""},
        Row{"NameIsNoMustersName", "infra: slurm/Lab", "t.yaml:4:10: resources.infra: |Lab"},
        Row{"Blank", "infra: slurm / lab", "t.yaml:4:10: |has an empty part or a blank"},
        Row{"EmptyPart", "infra: slurm//gpu", "t.yaml:4:10: |has an empty part"},
        Row{"TooManyParts", "infra: slurm/a/b/c", "t.yaml:4:10: |more than three parts"},
        Row{"Unknown", "infra: moon/base", "t.yaml:4:10: |is no infrastructure that is known"},
        Row{"WithCloud", "infra: slurm/a\ncloud: aws",
            "t.yaml:4:10: resources.infra: |keep it alone"},
        Row{"WithRegionInAnEntry", "infra: slurm/a\nany_of:\n- {region: b}",
            "t.yaml:4:10: resources.infra: |keep it alone"},
        Row{"OldForm", "cloud: kubernetes\nregion: lab", "placement { clusters: 'lab' }"},
        Row{"OldFormOfSlurm", "cloud: slurm\nregion: lab\nzone: gpu",
            "placement { clusters: 'lab' pool: 'gpu' }"},
        Row{"K8sIsForInfra", "cloud: k8s", "t.yaml:4:10: |write kubernetes"},
        Row{"RegionAlone", "region: us-east-1", ""},
        Row{"Image", "image_id: docker:ubuntu:22.04", "image: 'ubuntu:22.04'"},
        Row{"ImageWithBlanks", "image_id: ' docker:ubuntu '", "image: 'ubuntu'"},
        Row{"PlainImageOnKubernetes", "infra: k8s/a\nimage_id: ubuntu",
            "placement { clusters: 'a' } image: 'ubuntu'"},
        Row{"PlainImageOnACloud", "infra: aws\nimage_id: ami-123", ""},
        Row{"ImagesOfACloudsRegions", "infra: aws\nimage_id: {us-east-1: ami-1, us-west-2: ami-2}",
            ""},
        Row{"AContainerAmongImagesOfRegions",
            "infra: aws\nimage_id: {us-east-1: ami-1, us-west-2: docker:a}",
            "t.yaml:5:13: |for each region"},
        Row{"AContainerBesideAnImage", "infra: aws\nimage_id: {us-east-1: ami-1, docker: a}",
            "t.yaml:5:13: |for each region"},
        Row{"PlainImage", "image_id: ami-123", "t.yaml:4:13: resources.image_id: |docker:NAME:TAG"},
        Row{"CaseOfDocker", "image_id: Docker:ubuntu", "t.yaml:4:13: |docker:NAME:TAG"},
        Row{"ImagesOfRegions", "image_id: {us-east-1: ami-1}", "t.yaml:4:13: |for each region"}),
    [](const auto& info) { return NameOf(info); });

INSTANTIATE_TEST_SUITE_P(
    Others, SkyPilotResources,
    ::testing::Values(
        Row{"Priority", "priority: -1000", "priority: -1000"},
        Row{"PriorityTooHigh", "priority: 1001", "t.yaml:4:13: |from -1000 to 1000"},
        Row{"PriorityInQuotes", "priority: '5'", "t.yaml:4:13: |without quotes"},
        Row{"Recovery", "job_recovery: failover", "retry { on_preemption: true }"},
        Row{"NoRecovery", "job_recovery: none", "retry { max_runs: 1 }"},
        Row{"RecoveryNull", "job_recovery: null", ""},
        Row{"RecoveryMapping",
            "job_recovery: {strategy: EAGER_NEXT_REGION, max_restarts_on_errors: 0}",
            "retry { on_preemption: true }"},
        Row{"RecoveryOfErrors", "job_recovery: {max_restarts_on_errors: 3}",
            "retry { max_runs: 4 on_failure: true }"},
        Row{"RecoveryOfManyErrors", "job_recovery: {max_restarts_on_errors: 1000}",
            "retry { max_runs: 100 on_failure: true }"},
        Row{"RecoveryOfExitCodes", "job_recovery: {recover_on_exit_codes: [33, 34]}",
            "retry { exit_codes: 33 exit_codes: 34 }"},
        Row{"RecoveryOfOneExitCode", "job_recovery: {recover_on_exit_codes: 33}",
            "retry { exit_codes: 33 }"},
        Row{"RecoveryOfNoExitCode", "job_recovery: {recover_on_exit_codes: [256]}",
            "t.yaml:4:42: resources.job_recovery.recover_on_exit_codes[0]:"},
        Row{"RecoveryNotNegative", "job_recovery: {max_restarts_on_errors: -1}",
            "t.yaml:4:42: resources.job_recovery.max_restarts_on_errors:"},
        Row{"RecoveryUnknown", "job_recovery: often", "t.yaml:4:17: |is no strategy"},
        Row{"Labels", "labels: {team: vision, v: '1'}",
            "labels { key: 'team' value: 'vision' } labels { key: 'v' value: '1' }"},
        Row{"LabelsNull", "labels:", ""},
        Row{"LabelIsNoText", "labels: {v: 1}", "t.yaml:4:15: resources.labels.v: expected a text"},
        // Fields of rented machines have no effect, whatever they say.
        Row{"DiskSize", "disk_size: 256", ""}, Row{"DiskTier", "disk_tier: BEST", ""},
        Row{"Ports", "ports: ['1-2', 80]", ""}, Row{"Autostop", "autostop: {idle_minutes: 5}", ""},
        Row{"Spot", "use_spot: true", ""}, Row{"Instance", "instance_type: p5.48xlarge", ""},
        Row{"UnknownField", "accelerator: H100\nuse_spot: true",
            "t.yaml:4:3: resources.accelerator: no such field; did you mean \"accelerators\"?"},
        Row{"UnknownFieldWithoutValue", "colour:\nuse_spot: true",
            "t.yaml:4:3: resources.colour: no such field"},
        Row{"Twice", "cpus: 4\n'cpus': 8\nuse_spot: true",
            "t.yaml:5:3: \"cpus\" is given twice, first in line 4"}),
    [](const auto& info) { return NameOf(info); });

INSTANTIATE_TEST_SUITE_P(
    Alternatives, SkyPilotResources,
    ::testing::Values(
        Row{"Mapping", "accelerators: {H100: 4, A100: 8}", H100(4000)},
        Row{"SetOfNames", "accelerators: {H100, A100}", H100(1000)},
        Row{"List", "accelerators: [H100:4, A100:8]", H100(4000)},
        Row{"AnyOf", "cpus: 2\nany_of:\n- {accelerators: H100:4}\n- {accelerators: A100:4}",
            "resources { cpu_millis: 2000 gpus { type: 'H100' count_millis: 4000 } }"},
        Row{"EntryWins", "cpus: 2\nordered:\n- {cpus: 4}\n- {}", "resources { cpu_millis: 4000 }"},
        Row{"EmptyEntryIsTheBase", "cpus: 2\nany_of: [{}]", "resources { cpu_millis: 2000 }"},
        Row{"EmptyListIsAbsent", "cpus: 2\nany_of: []", "resources { cpu_millis: 2000 }"},
        Row{"NullEntry", "any_of:\n-", "t.yaml:|resources.any_of[0]: is empty; write {}"},
        Row{"Both", "any_of: [{}]\nordered: [{}]",
            "t.yaml:4:11: resources.any_of: ordered is given too"},
        Row{"Nested", "any_of: [{any_of: [{}]}]",
            "t.yaml:4:13: |have no alternatives of their own"},
        Row{"NotAList", "any_of: {cpus: 4}", "t.yaml:4:11: resources.any_of: expected a list"},
        Row{"GpusInAnEntry", "any_of:\n- {gpus: H100}", H100(1000)},
        Row{"SeveralTypesInAnEntry", "any_of:\n- {accelerators: {H100: 1, A100: 1}}",
            "t.yaml:5:20: resources.any_of[0].accelerators: expected one type"},
        Row{"NullCountInAnEntry", "any_of:\n- {accelerators: {H100}}",
            "t.yaml:5:20: |with its count"},
        Row{"ListWithAnyOf", "accelerators: [H100, A100]\nany_of: [{}]",
            "t.yaml:4:17: |cannot be combined with any_of"},
        Row{"SeveralWithOrdered", "accelerators: {H100: 1, A100: 1}\nordered: [{}]",
            "t.yaml:4:17: |cannot be combined with ordered"},
        Row{"SeveralWithAnyOf", "accelerators: {H100: 1, A100: 1}\nany_of: [{cpus: 1}, {cpus: 2}]",
            "resources { cpu_millis: 1000 gpus { type: 'H100' count_millis: 1000 } }"},
        Row{"ClustersAreOneChoice", "any_of:\n- infra: slurm/a\n- infra: k8s/b\n- infra: ssh/a",
            "placement { clusters: ['a', 'b'] }"},
        Row{"CloudsStandBack", "any_of:\n- infra: aws\n- infra: k8s/b",
            "placement { clusters: 'b' }"},
        Row{"CloudsAlone", "any_of:\n- infra: aws\n- infra: gcp", ""},
        Row{"DuplicatesAreOne", "ordered: [{cpus: 1}, {cpus: 1}]",
            "resources { cpu_millis: 1000 }"},
        // SkyPilot lets a label of one entry leak into the others.
        Row{"LabelsAreMergedEachForItself",
            "labels: {a: b}\nordered:\n- {cpus: 1}\n- {cpus: 2, labels: {c: d}}",
            "resources { cpu_millis: 1000 } labels { key: 'a' value: 'b' }"}),
    [](const auto& info) { return NameOf(info); });

std::vector<std::string> NotesOf(const std::string& fields) {
  const auto jobs = ParseJobFile("t.yaml", TaskWith(fields));
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  return jobs.ok() ? jobs->notes : std::vector<std::string>();
}

TEST(SkyPilotNotes, OneNamesAllThatMeansNothingHere) {
  EXPECT_THAT(
      NotesOf("infra: aws/us-east-1\nuse_spot: true\ndisk_size: 512\nautostop: 5\nports: 8080\n"
              "job_recovery: {max_restarts_on_errors: 3}\ncpus: 1\nimage_id: {us-east-1: ami-1}"),
      ElementsAre("t.yaml: ignored, because it means nothing to Muster's clusters: "
                  "resources.infra, resources.image_id, resources.use_spot, resources.disk_size, "
                  "resources.ports, resources.autostop "
                  "(--strict refuses it)"));
}

TEST(SkyPilotAlternatives, AreWholeSpecsOfWhichTheFirstIsTheJobs) {
  const auto jobs = ParseJobFile(
      "t.yaml", TaskWith("cpus: 2\nany_of: [{accelerators: H100, labels: {a: b}}, {memory: 4}]"),
      {});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  const std::vector<v1::JobSpec>& all = jobs->alternatives.at(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(all[0], jobs->specs[0]));
  EXPECT_EQ(all[0].resources().gpus(0).type(), "H100");
  EXPECT_EQ(all[1].resources().gpus_size(), 0);
  EXPECT_EQ(all[1].resources().memory_bytes(), uint64_t{4} << 30);
  EXPECT_THAT(all[1].labels(), IsEmpty());
  for (const v1::JobSpec& one : all) {
    EXPECT_EQ(one.resources().cpu_millis(), 2000u);
    EXPECT_EQ(one.command().script(), jobs->specs[0].command().script());
  }
}

// Expects the alternatives of `fields`, each with the rest of the task.
void ExpectAlternatives(const std::string& fields, std::string_view becomes) {
  const auto jobs = ParseJobFile("t.yaml", TaskWith(fields), {});
  ASSERT_TRUE(jobs.ok()) << fields << jobs.status();
  ASSERT_EQ(jobs->alternatives.size(), 1u) << fields;
  std::vector<v1::JobSpec> parts = jobs->alternatives.at(0);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(parts[0], jobs->specs[0]));
  for (v1::JobSpec& one : parts) {
    EXPECT_EQ(one.nodes(), 1u);
    EXPECT_TRUE(one.has_command());
    one.clear_nodes();
    one.clear_command();
  }
  ExpectJobs(parts, becomes);
}

TEST(SkyPilotAlternatives, KeepNothingOfTheFirst) {
  ExpectAlternatives("ordered: [{infra: slurm}, {infra: ssh/boxes}]",
                     "slurm {} --- placement { clusters: 'boxes' }");
  ExpectAlternatives("any_of: [{infra: slurm}, {infra: k8s}]", "slurm {} --- kubernetes {}");
  ExpectAlternatives("any_of: [{infra: k8s}, {infra: slurm}]", "kubernetes {} --- slurm {}");
  ExpectAlternatives("any_of: [{infra: k8s, image_id: a}, {infra: slurm, image_id: 'docker:b'}]",
                     "kubernetes {} image: 'a' --- slurm {} image: 'b'");
  ExpectAlternatives("any_of: [{infra: k8s, image_id: a}, {infra: slurm}]",
                     "kubernetes {} image: 'a' --- slurm {}");
  ExpectAlternatives("any_of: [{cpus: 1, priority: 5, job_recovery: none}, {memory: 1}]",
                     "resources { cpu_millis: 1000 } priority: 5 retry { max_runs: 1 } --- "
                     "resources { memory_bytes: 1073741824 }");
}

TEST(SkyPilotAlternatives, ThatDifferInTheirClustersAloneAreOneJob) {
  const auto jobs =
      ParseJobFile("t.yaml", TaskWith("any_of: [{infra: k8s/a}, {infra: slurm/b}]"), {});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(jobs->alternatives, IsEmpty());
  EXPECT_THAT(jobs->specs[0].placement().clusters(), ElementsAre("a", "b"));
}

TEST(SkyPilotNotes, AreErrorsAtTheirPlacesWhenStrict) {
  const JobFileOptions strict{.strict = true, .env = {}};
  const auto jobs = ParseJobFile("t.yaml", TaskWith("use_spot: true\ndisk_size: 512"), strict);
  ASSERT_FALSE(jobs.ok());
  EXPECT_THAT(MessageOf(jobs.status()),
              HasSubstr("t.yaml:4:13: resources.use_spot: means nothing to Muster's clusters"));
  EXPECT_THAT(MessageOf(jobs.status()), HasSubstr("t.yaml:5:14: resources.disk_size: "));
  const auto image =
      ParseJobFile("t.yaml", TaskWith("infra: aws\nimage_id: {us-east-1: ami-1}"), strict);
  EXPECT_THAT(MessageOf(image.status()), HasSubstr("t.yaml:5:13: resources.image_id: means"));
  EXPECT_TRUE(ParseJobFile("t.yaml", TaskWith("cpus: 4+\ninfra: slurm/a"), strict).ok());
  EXPECT_TRUE(ParseJobFile("t.yaml", TaskWith("any_of: [{cpus: 1}, {cpus: 2}]"), strict).ok());
}

}  // namespace
}  // namespace muster::client::skypilot

// Tests which dialect a file of jobs is read in, and the remarks about it.
#include "clients/cpp/dialect.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/clients/skypilot_fixture.h"

namespace muster::client {
namespace {

using skypilot::MessageOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(DialectOfAFile, IsToldByFieldsThatOneAloneHas) {
  const std::pair<const char*, Dialect> cases[] = {
      {"run: x", Dialect::kMuster},
      {"run: x\nname: a\nsetup: y\nworkdir: /a\nresources: {cpus: 4, memory: 1Gi, gpus: H100}",
       Dialect::kMuster},
      {"run: x\nnodes: 2", Dialect::kMuster},
      {"run: x\nnum_nodes: 2", Dialect::kSkyPilot},
      {"run: x\nenvs: {}", Dialect::kSkyPilot},
      {"run: x\nresources: {accelerators: H100}", Dialect::kSkyPilot},
      {"run: x\nresources: {infra: k8s}", Dialect::kSkyPilot},
      {"run: x\npool: gpu", Dialect::kMuster},
      {"run: x\npool: {workers: 2}", Dialect::kSkyPilot},
      {"run: x\nworkdir: {url: u, ref: main}", Dialect::kSkyPilot},
      {"run: x\nresources: {cpus: 4+}", Dialect::kSkyPilot},
      {"run: x\nresources: {memory: 2x}", Dialect::kSkyPilot},
      {"run: x\nresources: {cpus: 4+}\ntime: 4h", Dialect::kMuster},
      {"run: x\nnum_nodes: 2\ntime: 4h", Dialect::kMuster},
      {"run: x\nlabels: {a: b}\nresources: {accelerators: H100}", Dialect::kMuster},
      {"run: x\n---\nrun: y\nnum_nodes: 2", Dialect::kSkyPilot},
      {"name: a\n---\nrun: x", Dialect::kSkyPilot},
      {"run: x\n---\nname: a", Dialect::kMuster},
      {"name: a", Dialect::kMuster},
      {"run: x\nnum_node: 2", Dialect::kSkyPilot},
      {"run: x\nfile_mounts: {a: b}", Dialect::kSkyPilot},
      {"run: x\nfile_mounts: {a: b}\ntime: 4h", Dialect::kMuster},
      {"run: x\nfile_mount: {a: b}", Dialect::kMuster},
      {"run: x\nresources: {prioriy: 5}", Dialect::kSkyPilot},
      {"run: x\n---\nrun: y\nresources: {acelerators: H100}", Dialect::kSkyPilot},
      {"run: x\nnum_node: 2\ntime: 4h", Dialect::kMuster},
      {"run: x\nnode: 2", Dialect::kMuster},
      {"run: x\nenviroment: {A: b}", Dialect::kMuster},
      {"run: x\nresources: {gpu: 1, cpuss: 2, zzzz: 3}", Dialect::kMuster},
      {"run: x\nimag: ubuntu", Dialect::kMuster},
      {"run: x\npartition: gpu", Dialect::kMuster},
      {"", Dialect::kMuster},
      {"- a", Dialect::kMuster},
      {"5", Dialect::kMuster}};
  for (const auto& [yaml, dialect] : cases) {
    EXPECT_EQ(DialectOf(YAML::LoadAll(yaml)).dialect, dialect) << yaml;
  }
}

// Returns the remark about a text whose fields decide nothing; "" if there is none.
std::string Remark(const std::string& yaml, const JobFileOptions& options = {}) {
  const auto jobs = ParseJobFile("t.yaml", yaml, options);
  EXPECT_TRUE(jobs.ok()) << yaml << jobs.status();
  if (!jobs.ok() || jobs->notes.empty()) return "";
  EXPECT_EQ(jobs->notes.size(), 1u);
  return jobs->notes[0];
}

TEST(DialectOfAFile, IsSaidWhereTheReadingsDifferAndNothingTells) {
  const std::string memory = "run: x\nresources: {memory: 32GB}";
  EXPECT_EQ(Remark(memory),
            "t.yaml: read as a Muster job file, because none of its fields tells; as a SkyPilot "
            "task it would mean something else: memory is 29.8Gi in a job file and 32Gi in a task. "
            "Say --as muster or --as sky");
  EXPECT_THAT(Remark("run: x\n---\nrun: y"),
              HasSubstr("its 2 documents are jobs that do not wait for each other"));
  // Each document counts, and what is so of several is said once.
  EXPECT_THAT(Remark("run: x\n---\nrun: y\nresources: {memory: 32GB}\n---\nrun: '[[ a ]]'\n"
                     "resources: {memory: 32GB}"),
              HasSubstr("something else: in document 2, memory is 29.8Gi in a job file and 32Gi in "
                        "a task; in document 3, run needs bash, which runs it in a task; sh does "
                        "in a job file; its 3 documents are jobs"));
  std::string many = "run: x";
  for (int i = 1; i < 12; ++i) absl::StrAppend(&many, "\n---\nrun: x\nworkdir: /d", i);
  EXPECT_THAT(Remark(many), HasSubstr("; and 3 more; its 12 documents"));
  // A task of a chain that would be refused is no other meaning.
  EXPECT_EQ(Remark("run: x\nresources: {memory: 32GB}\n---\nrun: y\n"
                   "resources: {memory: 16G}"),
            "");
  EXPECT_THAT(Remark("run: x\nworkdir: /data"), HasSubstr("workdir /data is a directory of the"));
  EXPECT_THAT(Remark("run: x\nfile_mounts: {a: ./b}\nresources: {memory: 32GB}"),
              HasSubstr("read as a SkyPilot task, because"));
  for (const char* script : {"source venv/bin/activate",
                             "if [[ -f a ]]; then b; fi",
                             "set -euo pipefail",
                             "a=(1 2)",
                             "wc <<< a",
                             "diff <(a) <(b)",
                             "echo ${a[0]}",
                             "for i in {1..3}; do a; done",
                             "a &> log",
                             "(( i++ ))",
                             "for ((i=0; i<4; i++)); do a; done",
                             "[ $A == x ] || b",
                             "arr+=(1)",
                             "echo ${!x}",
                             "let i=1",
                             "trap end ERR",
                             "read -ra words",
                             "export -f f",
                             "set -E",
                             "cd ${BASH_SOURCE%/*}",
                             "sleep $RANDOM",
                             "mkdir -p out/{train,val} && ls out",
                             "cp a{,.bak}",
                             "echo {${a},$b}/x",
                             "ls {\"a b\",c}",
                             "mkdir {a..e} {01..10..2}",
                             "echo \"$(ls {a,b})\"",
                             "echo \"{\" {a,b}",
                             "cat <<END; ls {a,b}\nx\nEND",
                             "cat <<END\n{a,b}\nEND\nls {a,b}",
                             "echo $((1<<x))\nls {a,b}",
                             "ls out && echo -e \"a\\tb\"",
                             "echo -ne x",
                             "x=$(echo -e y)",
                             "if a; then echo -E b; fi"}) {
    const std::string run = YAML::Dump(YAML::Node(script));
    EXPECT_THAT(Remark("run: " + run), HasSubstr("run needs bash")) << script;
    EXPECT_THAT(Remark("run: x\nsetup: " + run), HasSubstr("setup needs bash")) << script;
  }
}

TEST(DialectOfAFile, IsNotSaidWhereItIsAllTheSame) {
  for (const char* yaml :
       {"run: echo hello", "run: x\nname: a\nresources: {cpus: 4, memory: 16Gi, gpus: H100:2}",
        "run: x\nresources: {memory: 16G}", "run: x\nname: 'two words'\nresources: {memory: 16GB}",
        "run: x\ntime: 1h\nresources: {memory: 32GB}", "run: x\nworkdir: ./a",
        "num_nodes: 1\nrun: x\nresources: {memory: 32GB}", "run: x\nfile_mounts: {a: ./b}",
        "run: '[ -f a ] && echo $((1 + 2)) >&2 || . ./b; echo \"${a:-b}\"'",
        "run: 'read -r data; [ a = b ] || trap end EXIT; set -e; export A=1'",
        R"(run: |
  grep -v '^$' f; grep 'error$' log; [ -n "$BASH_VERSION" ]
  awk '{sum+=$1} END {print sum}' f; sqlite3 db <<END
  select * from job
  END)",
        R"(run: |
  echo -n x; echo "-e" -- ; echo - e; printf '{a,b}' "{a,b}" \{a,b} # ls {a,b}
  grep -E 'a{1,3}' f; awk '{print $1,$2}' f; cat <<'END'
  x = {1,2}; it's
  END
  f() { a; }; echo ${x},{y} { a,b } "${x:-{a,b}}" x={ ; }
  curl -d "{\"a\":1,\"b\":$c}" $d; echo "it's {a,b}" {a\,b})",
        "run: |\n  #!/bin/bash\n  [[ a = a ]]"}) {
    EXPECT_EQ(Remark(yaml), "") << yaml;
  }
}

TEST(DialectOfAFile, IsTheOneThatIsNamed) {
  const std::string yaml = "run: '[[ a ]]'\nresources: {memory: 32GB}";
  JobFileOptions options;
  options.dialect = Dialect::kSkyPilot;
  EXPECT_EQ(Remark(yaml, options), "");
  EXPECT_EQ(ParseJobFile("t.yaml", yaml, options)->specs[0].resources().memory_bytes(),
            uint64_t{32} << 30);
  options.dialect = Dialect::kMuster;
  EXPECT_EQ(Remark(yaml, options), "");
  EXPECT_EQ(ParseJobFile("t.yaml", yaml, options)->specs[0].resources().memory_bytes(),
            32'000'000'000u);
  EXPECT_THAT(MessageOf(ParseJobFile("t.yaml", "run: x\nnum_nodes: 2", options).status()),
              StartsWith("t.yaml:2:1: num_nodes: no such field; write nodes"));
}

TEST(DialectOfAFile, IsNamedByTheErrorIfTheOtherOneHasNone) {
  EXPECT_THAT(MessageOf(ParseJobFile("t.yaml", "run: x\nresources: {memory: 32}").status()),
              HasSubstr("\nt.yaml: it was read as a Muster job file, because none of its fields "
                        "tells; as a SkyPilot task it has no error, and --as sky reads it so"));
  EXPECT_THAT(MessageOf(ParseJobFile("t.yaml",
                                     "run: x\nfile_mounts: {a: b}\nresources: {memory: "
                                     "32G}")
                            .status()),
              HasSubstr("as a Muster job file it has no error, and --as muster reads it so"));
  EXPECT_THAT(MessageOf(ParseJobFile("t.yaml", "run: 5\nresources: {memory: x}").status()),
              Not(HasSubstr("--as")));
}

TEST(DialectOfAFile, IsMustersIfBothAreMixedAndTheErrorHelps) {
  EXPECT_THAT(MessageOf(ParseJobFile("t.yaml", "run: x\ntime: 4h\nnum_nodes: 2").status()),
              StartsWith("t.yaml:3:1: num_nodes: no such field; write nodes"));
  EXPECT_THAT(
      MessageOf(
          ParseJobFile("t.yaml", "run: x\nnodes: 2\nresources: {acelerators: H100}").status()),
      StartsWith("t.yaml:3:13: resources.acelerators: no such field; write gpus, as in gpus: "));
}

}  // namespace
}  // namespace muster::client

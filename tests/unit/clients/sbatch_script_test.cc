#include "clients/cpp/slurm/sbatch_script.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::client::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns "name=value" or "name" of each setting, in order.
std::vector<std::string> Shown(const Settings& read) {
  std::vector<std::string> shown;
  for (const Setting& setting : read.settings) {
    shown.push_back(std::string(setting.option->name) +
                    (setting.value.empty() ? "" : "=" + setting.value));
  }
  return shown;
}

std::vector<std::string> Directives(const std::string& lines) {
  const auto read = ReadSbatchDirectives("#!/bin/bash\n" + lines);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? Shown(*read) : std::vector<std::string>();
}

void ExpectRefused(const std::string& lines, const std::string& words) {
  const auto read = ReadSbatchDirectives("#!/bin/bash\n" + lines);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << lines;
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(words)) << lines;
}

TEST(SplitDirectiveTest, SplitsAsSbatchDoes) {
  // Each row was seen with `sbatch -vv` of Slurm 22.05.
  const struct {
    const char* text;
    std::vector<std::string> words;
  } cases[] = {
      {" --job-name=\"my job\" -n2 # trailing", {"--job-name=my job", "-n2"}},
      {"\t-t 10 --time=20", {"-t", "10", "--time=20"}},
      {"--nodes=3", {"--nodes=3"}},
      {" --comment='it''s' --constraint=a\\#b\\ c -o\"x y\"%j.out",
       {"--comment=its", "--constraint=a#b", "c", "-ox y%j.out"}},
      {" -J a#b", {"-J", "a"}},
      {" -Jx\\\\y --comment=\"a\\\"b\" -p \"\\#x\"", {"-Jx\\y", "--comment=a\"b", "-p", "#x"}},
      {" -J a\"\"b", {"-J", "ab"}},
      {" -N \"\" -J a", {"-N"}},
      {" \"\" -J a", {}},
      {" 'a\"b' \"c'd\"", {"a\"b", "c'd"}},
      {" -p \"#a\" '#b'", {"-p", "#a", "#b"}},
      {" a\\", {"a"}},
      {" a\\ b \\\tc", {"a", "b"}},
      {" \"a\\ b\"", {"a b"}},
      {"", {}},
      {" # nothing", {}},
  };
  for (const auto& c : cases) {
    const auto words = SplitDirective(c.text);
    ASSERT_TRUE(words.ok()) << c.text << words.status();
    EXPECT_EQ(*words, c.words) << c.text;
  }
  for (const char* text : {" \"abc", " 'abc\"", " a\"b c"}) {
    EXPECT_THAT(std::string(SplitDirective(text).status().message()), HasSubstr("unmatched"));
  }
  EXPECT_FALSE(SplitDirective(" -N2 : -N3").ok());
  EXPECT_FALSE(SplitDirective(" " + std::string(9000, 'a')).ok());
}

TEST(ReadSbatchDirectivesTest, DirectivesStopAtTheFirstCommand) {
  EXPECT_THAT(Directives("# comment\n\n   \n\t# indented\n#SBATCH -N2\nexport A=1\n#SBATCH -n3\n"),
              ElementsAre("nodes=2"));
  EXPECT_THAT(Directives("  : \n#SBATCH -N2\n"), IsEmpty());
}

TEST(ReadSbatchDirectivesTest, OnlyTheExactMarkAtTheLinesBeginningCounts) {
  EXPECT_THAT(Directives("##SBATCH -p off\n# SBATCH -p off\n #SBATCH -p off\n#sbatch -p off\n"),
              IsEmpty());
  EXPECT_THAT(Directives("#SBATCH--nodes=3\n#SBATCH\n"), ElementsAre("nodes=3"));
  EXPECT_THAT(Directives("#SLURM -N2\n#SBATCH -n3\n"), ElementsAre("nodes=2", "ntasks=3"))
      << "an old spelling";
}

TEST(ReadSbatchDirectivesTest, EveryWayToWriteAnOptionIsRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"--time=5", "time=5"},
      {"--time 5", "time=5"},
      {"-t5", "time=5"},
      {"-t 5", "time=5"},
      {"--part=a", "partition=a"},
      {"--tasks=3", "ntasks-per-node=3"},  // a beginning of --tasks-per-node
      {"--cluster=a", "clusters=a"},
      {"--tasks-per-node 3", "ntasks-per-node=3"},
      {"--exclusive", "exclusive"},
      {"--exclusive=user", "exclusive=user"},
      {"--no-kill=off", "no-kill=off"},
      {"-k", "no-kill"},
      {"--nice=5", "nice=5"},
      {"--requeue", "requeue"},
      {"-N -J", "nodes=-J"},
      {"--mem=", "mem"},
      {"--container=/x", "container=/x"},
      {"--container-image=nvcr.io\\#a/b:1", "container-image=nvcr.io#a/b:1"},
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_THAT(Directives("#SBATCH " + std::string(text)), ElementsAre(shown)) << text;
  }
}

TEST(ReadSbatchDirectivesTest, LettersMayStandTogether) {
  EXPECT_THAT(Directives("#SBATCH -HsN2\n#SBATCH -Ht 5\n"),
              ElementsAre("hold", "oversubscribe", "nodes=2", "hold", "time=5"));
  // The rest of the word is an optional argument's value.
  EXPECT_THAT(Directives("#SBATCH -kN2"), ElementsAre("no-kill=N2"));
}

TEST(ReadSbatchDirectivesTest, AValueMayStandOnTheNextLine) {
  EXPECT_THAT(Directives("#SBATCH -t\n#SBATCH 10"), ElementsAre("time=10"));
}

TEST(ReadSbatchDirectivesTest, ErrorsAreSbatchsAndNameTheLine) {
  ExpectRefused("#SBATCH -N2\n#SBATCH stray\n", "line 3: invalid directive \"stray\"");
  ExpectRefused("#SBATCH --exclusive user -N2\n", "invalid directive \"user\"");
  ExpectRefused("#SBATCH -J x -- -N 3\n", "invalid directive \"-N\"");
  ExpectRefused("#SBATCH --mem\n", "option --mem requires an argument");
  ExpectRefused("#SBATCH -t\n", "option -t requires an argument");
  ExpectRefused("#SBATCH --requeue=1\n", "--requeue does not allow an argument");
  ExpectRefused("#SBATCH --no -N2\n", "ambiguous; it may be --no-kill");
  ExpectRefused("#SBATCH -J \"abc\n", "line 2: unmatched \"");
  ExpectRefused("#SBATCH -N1 : -N2\n", "line 2: Unexpected `:` in [ : -N2]");
}

TEST(ReadSbatchDirectivesTest, AHeterogeneousJobIsRefusedWithARemedy) {
  for (const char* mark : {"hetjob", "packjob"}) {
    const std::string words = fmt::format("line 3: it is a heterogeneous job ({})", mark);
    ExpectRefused(fmt::format("#SBATCH -N1\n#SBATCH {}\n#SBATCH -N2\n", mark), words);
    ExpectRefused(fmt::format("#SBATCH -N1\n#SBATCH {}\n", mark), "each component as a job of its");
  }
}

TEST(ReadSbatchDirectivesTest, WhatIsNoBatchScriptIsRefusedInSbatchsWords) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "Batch script is empty!"},
      {"echo hello\n", "does not look like a batch script"},
      {"#!/bin/sh\r\ntrue\r\n", "DOS line breaks"},
      {"#!/bin/sh\n# f\xfcr\n", "line 2: it is not UTF-8"},
      {"#!/bin/sh\n# f\xfcr\n", "iconv -f latin1 -t utf8 SCRIPT >CONVERTED"},
      {"#!/bin/sh\n" + std::string(1, '\0'), "NUL"},
      {"#!/bin/sh\n" + std::string(kMaxBatchScriptBytes, '#'), "at most"},
  };
  for (const auto& [script, words] : cases) {
    EXPECT_THAT(std::string(ReadSbatchDirectives(script).status().message()), HasSubstr(words));
  }
}

TEST(ReadSbatchDirectivesTest, WhatIsNotUnderstoodIsListedWithItsLine) {
  const auto read = ReadSbatchDirectives(
      "#!/bin/sh\n#SBATCH --nosuch=1 -N2\n#SBATCH --new value -Hy3\n#PBS -l walltime=1\ntrue\n"
      "#BSUB -J x\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(Shown(*read), ElementsAre("nodes=2", "hold"));
  EXPECT_THAT(read->not_understood,
              ElementsAre("--nosuch=1 (line 2)", "--new value (line 3)", "-y3 (line 3)",
                          "#PBS -l walltime=1 (line 4)", "#BSUB -J x (line 6)"));
}

TEST(ReadSbatchDirectivesTest, PbsDirectivesMayBeSwitchedOff) {
  const auto read = ReadSbatchDirectives("#!/bin/sh\n#SBATCH --ignore-pbs\n#PBS -N x\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->not_understood, IsEmpty());
}

TEST(ReadSbatchTest, PbsDirectivesMayBeSwitchedOffOutsideOfTheScriptToo) {
  const std::string script = "#!/bin/sh\n#PBS -N x\n";
  EXPECT_THAT(ReadSbatch({"run.sh"}, {}, script)->options.not_understood,
              ElementsAre("#PBS -N x (line 2)"));
  EXPECT_THAT(ReadSbatch({"--ignore-pbs", "run.sh"}, {}, script)->options.not_understood,
              IsEmpty());
  EXPECT_THAT(ReadSbatch({"run.sh"}, {{"SBATCH_IGNORE_PBS", ""}}, script)->options.not_understood,
              IsEmpty());
}

TEST(ReadSbatchCommandLineTest, OptionsEndAtTheScript) {
  const auto line = ReadSbatchCommandLine({"-N2", "--time", "5", "run.sh", "-n", "3"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(Shown(line->options), ElementsAre("nodes=2", "time=5"));
  EXPECT_EQ(line->script_path, "run.sh");
  EXPECT_THAT(line->arguments, ElementsAre("-n", "3"));
  EXPECT_EQ(ReadSbatchCommandLine({"--", "-N2"})->script_path, "-N2");
  EXPECT_THAT(std::string(ReadSbatchCommandLine({"-N1", ":", "-N2", "a.sh"}).status().message()),
              HasSubstr("it is a heterogeneous job (a ':' between components)"));
  EXPECT_THAT(ReadSbatchCommandLine({"a.sh", ":", "-N2"})->arguments, ElementsAre(":", "-N2"));
  EXPECT_FALSE(ReadSbatchCommandLine({"--wrap=true", "a.sh"}).ok());
}

TEST(ReadSbatchTest, TheCommandLineWinsOverTheEnvironmentAndThatOverTheScript) {
  const auto read = ReadSbatch({"-p", "cli", "run.sh", "arg"},
                               {{"SBATCH_PARTITION", "env"},
                                {"SBATCH_TIMELIMIT", "5"},
                                {"SBATCH_REQUEUE", "1"},
                                {"SBATCH_NEW", "x"},
                                {"HOME", "/home/ann"}},
                               "#!/bin/sh\n#SBATCH -p script -t 3 -J name -J other\ntrue\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.Find("partition")->value, "cli");
  EXPECT_EQ(read->options.Find("partition")->where, "command line");
  EXPECT_EQ(read->options.Find("time")->value, "5");
  EXPECT_EQ(read->options.Find("time")->where, "SBATCH_TIMELIMIT");
  EXPECT_EQ(read->options.Find("job-name")->value, "other");
  EXPECT_EQ(read->options.Find("job-name")->where, "line 2");
  EXPECT_NE(read->options.Find("requeue"), nullptr);
  EXPECT_EQ(read->options.settings.size(), 4u);
  EXPECT_THAT(read->options.not_understood, ElementsAre("SBATCH_NEW (environment)"));
  EXPECT_THAT(read->arguments, ElementsAre("arg"));
}

TEST(ReadSbatchTest, AVariableSwitchesAnOptionOnUnlessItSaysNo) {
  for (const char* value : {"", "1", "7", "yes"}) {
    EXPECT_THAT(Shown(ReadSbatchEnvironment({{"SBATCH_OVERCOMMIT", value}})),
                ElementsAre("overcommit"))
        << value;
  }
  for (const char* value : {"0", "no", "true", "-1"}) {
    const Settings read = ReadSbatchEnvironment({{"SBATCH_OVERCOMMIT", value}});
    EXPECT_THAT(Shown(read), IsEmpty()) << value;
    EXPECT_THAT(read.not_understood, IsEmpty()) << value;
  }
  EXPECT_THAT(Shown(ReadSbatchEnvironment({{"SLURM_CLUSTERS", "lab"}, {"SLURM_HINT", "x"}})),
              ElementsAre("clusters=lab", "hint=x"));
}

TEST(ReadSbatchTest, AVariableAboutMemoryGivesWayToAnotherOptionAboutIt) {
  const std::map<std::string, std::string> variable = {{"SBATCH_MEM_PER_CPU", "200"}};
  const auto shown = [&](const std::vector<std::string>& words, const char* directive) {
    const auto read = ReadSbatch(words, variable, std::string("#!/bin/sh\n") + directive);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? Shown(read->options) : std::vector<std::string>();
  };
  EXPECT_THAT(shown({"--mem=1G", "run.sh"}, ""), ElementsAre("mem=1G"));
  EXPECT_THAT(shown({"run.sh"}, "#SBATCH --mem=1G\n"), ElementsAre("mem=1G"));
  EXPECT_THAT(shown({"run.sh"}, "#SBATCH --mem-per-cpu=1G\n"), ElementsAre("mem-per-cpu=200"));
}

TEST(ReadSbatchTest, WrapMakesTheScript) {
  const auto read = ReadSbatch({"-n1", "--wrap", "echo 'a b'"}, {}, "");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->script, testing::StartsWith("#!/bin/sh\n"));
  EXPECT_THAT(read->script, testing::EndsWith("\necho 'a b'\n"));
}

// ---- random texts

RC_GTEST_PROP(SplitDirectiveTest, AQuotedWordComesBackAsItIs, ()) {
  const auto text = *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \t\"'\\#:=-"))));
  std::string quoted = " \"";
  for (char c : text) quoted += (c == '"' || c == '\\') ? std::string("\\") + c : std::string(1, c);
  const auto words = SplitDirective(quoted + "\" next");
  RC_ASSERT(words.ok());
  RC_ASSERT(*words == std::vector<std::string>({text, "next"}));
}

RC_GTEST_PROP(ReadSbatchTest, AnyScriptIsReadOrRefused, ()) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{
      "#SBATCH ", "\n", "\n#SBATCH ", "-",      "--",   "-N",   "--time", "=", "3",    " ", "\"",
      "'",        "\\", "#",          "nosuch", "-kHs", "#PBS", "true",   ":", "\xff", "\t"});
  std::string script = "#!/bin/sh\n";
  for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) script += one;
  const auto read = ReadSbatch({"x.sh"}, {}, script);
  if (!read.ok()) {
    RC_ASSERT(read.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  RC_ASSERT(read->script == script);
  for (const Setting& setting : read->options.settings) {
    RC_ASSERT(read->options.Find(setting.option->name) == &setting);
  }
}

}  // namespace
}  // namespace muster::client::slurm

// Signals that Slurm sends to batch.sh while its program runs.
#include <string>

#include "tests/unit/slurm/batch_fixture.h"

namespace muster::slurm {
namespace {

class BatchSignalsTest : public BatchScriptTest {
 protected:
  // Makes a program that notes the signals that it gets. `shell` is batch.sh, which leads its
  // session.
  std::string Program(const std::string& rest) {
    return fmt::format(
        "trap 'echo USR1; touch usr1' USR1; trap 'echo USR2; touch usr2' USR2\n"
        "await() {{ for i in $(seq 600); do [ -e $1 ] && return; sleep 0.05; done; echo none; }}\n"
        "shell=$(ps -o sid= -p $$); dir={}\n{}",
        paths_->directory(), rest);
  }
  std::string OutputOf(const std::string& rest) {
    const ExitRecord end = EndOf(Program(rest));
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.signal, 0);
    return ReadWhole(paths_->standard_output(0));
  }
};

TEST_F(BatchSignalsTest, WhatIsForTheBatchShellGoesToTheProgram) {
  EXPECT_EQ(OutputOf("kill -USR1 $shell; await usr1; rm usr1; kill -USR1 $shell; await usr1"),
            "USR1\nUSR1\n");
}

TEST_F(BatchSignalsTest, WhatAllProcessesHaveGotIsNotHandedOn) {
  EXPECT_EQ(OutputOf("echo full >$dir/signal; kill -USR1 $shell\n"
                     "for i in $(seq 600); do [ -e $dir/signal ] || break; sleep 0.05; done\n"
                     "kill -USR2 $shell; await usr2"),
            "USR2\n");
}

TEST_F(BatchSignalsTest, ASignalThatNoShellTakesHasAnotherStandForIt) {
  const ExitRecord end =
      EndOf(Program("echo 'batch 9' >$dir/signal; kill -USR1 $shell; await never"));
  EXPECT_EQ(end.signal, 9);
}

TEST_F(BatchSignalsTest, NoSignalEndsTheShellThatWritesTheRecord) {
  const ExitRecord end =
      EndOf(Program("trap '' HUP INT QUIT ALRM VTALRM PROF IO PWR XCPU XFSZ 34 64\n"
                    "for one in HUP INT QUIT ALRM VTALRM PROF IO PWR XCPU XFSZ 34 64; do kill "
                    "-$one $shell; done\n"
                    "kill -USR2 $shell; await usr2; exit 7"));
  EXPECT_EQ(end.code, 7);
}

}  // namespace
}  // namespace muster::slurm

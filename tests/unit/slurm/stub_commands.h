// A directory with stand-ins for Slurm's commands, for tests of what the backend asks and makes of
// the answers.
#ifndef MUSTER_TESTS_UNIT_SLURM_STUB_COMMANDS_H_
#define MUSTER_TESTS_UNIT_SLURM_STUB_COMMANDS_H_

#include <filesystem>
#include <fstream>
#include <string>

#include "agents/slurm/slurm.h"
#include "gtest/gtest.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::slurm {

class StubCommandsTest : public ::testing::Test {
 protected:
  void AddCommand(const std::string& name, const std::string& script) {
    const std::string path = root_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms(0700));
  }

  // An agent that runs these commands, as often as it likes.
  SlurmConfig Config() const {
    SlurmConfig config;
    config.cluster = "lab";
    config.run_dir = root_ + "/runs";
    config.bin_dir = root_;
    config.max_polls_per_minute = 0;
    return config;
  }

  const hosts::TempDir directory_;
  const std::string& root_ = directory_.path();
};

}  // namespace muster::slurm

#endif  // MUSTER_TESTS_UNIT_SLURM_STUB_COMMANDS_H_

#include "contract/slurm_signal.h"

#include <gtest/gtest.h>

namespace muster::contract {
namespace {

TEST(SlurmSignal, EveryFormOfSbatchIsReadAndWrittenInOne) {
  const struct {
    const char* text;
    SlurmSignal signal;
    const char* written;
  } cases[] = {
      {"USR1", {false, false, "USR1", 60}, "USR1@60"},
      {"SIGUSR1@120", {false, false, "USR1", 120}, "USR1@120"},
      {"10@0", {false, false, "USR1", 0}, "USR1@0"},
      {"B:TERM@65535", {false, true, "TERM", 65535}, "B:TERM@65535"},
      {"R:INT", {true, false, "INT", 60}, "R:INT@60"},
      {"RINT", {true, false, "INT", 60}, "R:INT@60"},
      {"B:KILL@60", {false, true, "KILL", 60}, "B:KILL@60"},
      {"9", {false, false, "KILL", 60}, "KILL@60"},
      {"RB:HUP@5", {true, true, "HUP", 5}, "RB:HUP@5"},
  };
  for (const auto& c : cases) {
    const auto signal = ParseSlurmSignal(c.text);
    ASSERT_TRUE(signal.has_value()) << c.text;
    EXPECT_EQ(*signal, c.signal) << c.text;
    EXPECT_EQ(FormatSlurmSignal(*signal), c.written);
  }
}

TEST(SlurmSignal, WhatWouldStopTheRunItselfIsNone) {
  for (const char* text : {"", "STOP", "CONT", "USR3", "USR1@", "USR1@-1", "USR1@65536",
                           "B:", "B:@60", "USR1@60s", "USR1 @60", "BUSR1", ":USR1"}) {
    EXPECT_FALSE(ParseSlurmSignal(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace muster::contract

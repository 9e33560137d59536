#include "contract/signal_number.h"

#include <signal.h>

#include <string>

#include "gtest/gtest.h"

namespace muster::contract {
namespace {

TEST(SignalNumberTest, NamesAreThoseOfThisSystem) {
  int named = 0;
  for (int signal = 1; signal < 32; ++signal) {
    const char* name = sigabbrev_np(signal);
    ASSERT_NE(name, nullptr) << signal;
    // glibc's name of IO is POLL.
    const std::string ours = signal == SIGIO ? "IO" : name;
    EXPECT_EQ(SignalNumber(ours), signal) << ours;
    EXPECT_EQ(SignalNumber("SIG" + ours), signal) << ours;
    ++named;
  }
  EXPECT_EQ(named, 31);
}

TEST(SignalNumberTest, NamesKnowNoCase) {
  EXPECT_EQ(SignalNumber("usr1"), SIGUSR1);
  EXPECT_EQ(SignalNumber("SigTerm"), SIGTERM);
}

TEST(SignalNumberTest, NumbersAreThoseOfLinux) {
  EXPECT_EQ(SignalNumber("1"), 1U);
  EXPECT_EQ(SignalNumber("64"), 64U);
  for (const char* text : {"0", "65", "-1", "1.5", "10 ", "", "SIG", "NUL", "SIG10", "+1"})
    EXPECT_EQ(SignalNumber(text), std::nullopt) << text;
}

}  // namespace
}  // namespace muster::contract

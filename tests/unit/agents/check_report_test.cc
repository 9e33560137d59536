#include "agents/core/check_report.h"

#include <gtest/gtest.h>

namespace muster::agents {
namespace {

v1::ClusterChecks TwoChecks() {
  v1::ClusterChecks checks;
  v1::ClusterCheck* good = checks.add_checks();
  good->set_subject("slurmctld");
  good->set_result(v1::CHECK_RESULT_OK);
  good->set_seen("it is UP");
  v1::ClusterCheck* bad = checks.add_checks();
  bad->set_subject("run_dir /x");
  bad->set_result(v1::CHECK_RESULT_FAIL);
  bad->set_seen("two\nlines\033[31m");
  bad->set_remedy("mend it");
  return checks;
}

TEST(CheckReportTest, EachCheckIsALineWithItsRemedyBelow) {
  EXPECT_EQ(CheckReport(TwoChecks()),
            "ok      slurmctld: it is UP\n"
            "fail    run_dir /x: two lines [31m\n"
            "        -> mend it\n"
            "1 ok, 0 warn, 1 fail, 0 skipped\n");
}

TEST(CheckReportTest, LinesOfOneCauseHaveTheirRemedyOnce) {
  v1::ClusterChecks checks = TwoChecks();
  v1::ClusterCheck* other = checks.add_checks();
  *other = checks.checks(1);
  other->set_seen("no space");
  EXPECT_EQ(CheckReport(checks),
            "ok      slurmctld: it is UP\n"
            "fail    run_dir /x: two lines [31m\n"
            "fail    run_dir /x: no space\n"
            "        -> mend it\n"
            "1 ok, 0 warn, 2 fail, 0 skipped\n");
}

TEST(CheckReportTest, OnlyAFailureFails) {
  v1::ClusterChecks checks = TwoChecks();
  EXPECT_TRUE(HasFailed(checks));
  checks.mutable_checks(1)->set_result(v1::CHECK_RESULT_WARN);
  EXPECT_FALSE(HasFailed(checks));
}

}  // namespace
}  // namespace muster::agents

#include "contract/job_order.h"

#include <gtest/gtest.h>

#include "contract/errors.h"

namespace muster::contract {
namespace {

using Field = JobOrder::Field;

TEST(JobOrder, ReadsAFieldAndItsDirection) {
  EXPECT_EQ(*ParseJobOrder(""), (JobOrder{Field::kId, true}));
  EXPECT_EQ(*ParseJobOrder("id"), (JobOrder{Field::kId, false}));
  EXPECT_EQ(*ParseJobOrder("create_time desc"), (JobOrder{Field::kId, true}));
  EXPECT_EQ(*ParseJobOrder("  start_time   desc "), (JobOrder{Field::kStartTime, true}));
  EXPECT_EQ(*ParseJobOrder("end_time"), (JobOrder{Field::kEndTime, false}));
  EXPECT_EQ(*ParseJobOrder("priority desc"), (JobOrder{Field::kPriority, true}));
  EXPECT_EQ(*ParseJobOrder("name"), (JobOrder{Field::kName, false}));
}

TEST(JobOrder, RefusesWhatIsNoOrder) {
  for (const char* text : {"state", "id asc", "id desc desc", "id, name", "desc", "ID"}) {
    const absl::Status status = ParseJobOrder(text).status();
    ASSERT_TRUE(GetBadRequest(status)) << text;
    EXPECT_EQ(GetBadRequest(status)->field_violations(0).field(), "order_by");
  }
}

TEST(JobOrder, JobsWithoutTheFieldComeLastInBothDirections) {
  v1::Job with, without;
  with.set_id(1);
  with.mutable_start_time()->set_seconds(5);
  without.set_id(2);
  for (const bool descending : {false, true}) {
    const JobOrder order{Field::kStartTime, descending};
    EXPECT_TRUE(ComesBefore(PlaceOf(with, order), PlaceOf(without, order), order));
    EXPECT_FALSE(ComesBefore(PlaceOf(without, order), PlaceOf(with, order), order));
  }
}

TEST(JobOrder, EqualJobsComeByTheirNumbersInTheSameDirection) {
  v1::Job a, b;
  a.set_id(1);
  b.set_id(2);
  for (const Field field : {Field::kId, Field::kPriority, Field::kName, Field::kEndTime}) {
    const JobOrder up{field, false}, down{field, true};
    EXPECT_TRUE(ComesBefore(PlaceOf(a, up), PlaceOf(b, up), up));
    EXPECT_TRUE(ComesBefore(PlaceOf(b, down), PlaceOf(a, down), down));
  }
}

}  // namespace
}  // namespace muster::contract

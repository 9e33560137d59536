#include "contract/old_reasons.h"

#include <google/protobuf/unknown_field_set.h>

#include "gtest/gtest.h"

namespace muster::contract {
namespace {

// Adds a field to a message as an earlier release wrote it.
void Add(int number, const std::string& bytes, google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddLengthDelimited(number, bytes);
}

TEST(OldReasons, TheSentenceOfARunAndItsAgeAreTakenOver) {
  google::protobuf::Timestamp since;
  since.set_seconds(77);
  v1::Run run;
  run.set_number(2);
  Add(7, "other jobs are ahead in the queue (Priority)", &run);
  Add(17, since.SerializeAsString(), &run);
  EXPECT_TRUE(TakeOverReason(&run));
  EXPECT_EQ(run.state_reason().code(), v1::STATE_REASON_CODE_OTHER);
  EXPECT_EQ(run.state_reason().message(), "other jobs are ahead in the queue (Priority)");
  EXPECT_EQ(run.state_reason().since().seconds(), 77);
  EXPECT_EQ(run.number(), 2u);
  EXPECT_TRUE(run.GetReflection()->GetUnknownFields(run).empty());
  EXPECT_FALSE(TakeOverReason(&run)) << "once";
  EXPECT_EQ(run.state_reason().since().seconds(), 77);
}

TEST(OldReasons, ThatOfAnEventIsTakenOverToo) {
  agent::v1::RunEvent event;
  Add(6, "no node is free", &event);
  EXPECT_TRUE(TakeOverReason(&event));
  EXPECT_EQ(event.state_reason().message(), "no node is free");
}

TEST(OldReasons, WhatHasNoneStaysAsItIs) {
  v1::Run run;
  run.set_run_key("k7m2-1-1");
  const std::string before = run.SerializeAsString();
  EXPECT_FALSE(TakeOverReason(&run));
  EXPECT_EQ(run.SerializeAsString(), before);
}

}  // namespace
}  // namespace muster::contract

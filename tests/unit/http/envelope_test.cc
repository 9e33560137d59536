#include "broker/http/envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "contract/errors.h"
#include "contract/text.h"

namespace muster::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Frames(std::initializer_list<std::string_view> messages) {
  std::string body;
  for (const std::string_view message : messages) AppendEnvelope(0, message, &body);
  return body;
}

std::string WordsFor(std::string_view body,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const auto split = SplitEnvelopes(body);
  EXPECT_EQ(split.status().code(), code);
  return std::string(ToStd(split.status().message()));
}

TEST(Envelope, HasFlagsAndTheLengthWithItsHighestByteFirst) {
  std::string out;
  AppendEnvelope(kEndStreamFlag, std::string(0x0102, 'x'), &out);
  EXPECT_EQ(out.substr(0, 5), std::string("\x02\x00\x00\x01\x02", 5));
  EXPECT_EQ(out.size(), 5u + 0x0102);
}

TEST(Envelope, ComesApartAsItWasPutTogether) {
  const std::string body = Frames({"one", "", std::string(70'000, 'y')});
  EXPECT_THAT(*SplitEnvelopes(body), ElementsAre("one", "", std::string(70'000, 'y')));
  EXPECT_THAT(*SplitEnvelopes(""), IsEmpty());
}

TEST(Envelope, IsRefusedWhereItIsCut) {
  const std::string body = Frames({"one"});
  EXPECT_THAT(WordsFor(body.substr(0, 4)), HasSubstr("4 bytes into a frame's head"));
  EXPECT_THAT(WordsFor(body.substr(0, 7)), HasSubstr("has 3 bytes, and 2 follow"));
  EXPECT_THAT(WordsFor(body + std::string("\0\xff\xff\xff\xff", 5)), HasSubstr("4294967295 bytes"));
}

TEST(Envelope, MayNotBeCompressedOrEndTheStream) {
  std::string body;
  AppendEnvelope(kCompressedFlag, "x", &body);
  EXPECT_THAT(WordsFor(body, absl::StatusCode::kInternal), HasSubstr("is compressed"));
  body.clear();
  AppendEnvelope(kEndStreamFlag, "{}", &body);
  EXPECT_THAT(WordsFor(body), HasSubstr("the flags 2"));
}

}  // namespace
}  // namespace muster::http

// Which worker is killed, and for what, as a table.
#include "runtime/worker_conduct.h"

#include <gtest/gtest.h>

namespace fettle::runtime {
namespace {

using Signs = WorkerConduct::Signs;

constexpr std::int64_t kStart = 1'000'000;  // Unix milliseconds

TEST(WorkerConduct, AWorkerThatIsSilentForTooLongIsUnfit) {
  struct Case {
    Signs signs;
    std::int64_t silent_ms;
    const char* fault;
    bool blames;
  };
  const Signs fine{};
  const Signs mute{.is_mute = true};
  const Signs waits{.keeps_run_waiting = true};
  const Signs lost{.keeps_run_waiting = true, .is_lost = true};
  const Signs prepares{.keeps_run_waiting = true, .prepares_first = true};
  for (const Case& c :
       {Case{fine, 1'000'000, "", false}, Case{mute, 1'999, "", true},
        Case{mute, 2'000, "it closed its standard output", true}, Case{waits, 9'999, "", false},
        Case{waits, 10'000, "it did not begin a run within 10 s", false},
        Case{lost, 2'000, "it closed its assignments", false}, Case{prepares, 599'999, "", false},
        Case{prepares, 600'000, "it did not begin a run within 600 s", false}}) {
    WorkerConduct conduct;
    EXPECT_FALSE(conduct.becomes_unfit(c.signs, kStart));
    EXPECT_EQ(conduct.becomes_unfit(c.signs, kStart + c.silent_ms), *c.fault != '\0') << c.fault;
    EXPECT_EQ(conduct.fault(), c.fault);
    EXPECT_EQ(conduct.blames_its_runs(), c.blames) << c.fault;
    EXPECT_FALSE(conduct.becomes_unfit(c.signs, kStart + c.silent_ms)) << "once";
  }
}

TEST(WorkerConduct, AnAnswerEndsTheSilence) {
  WorkerConduct conduct;
  const Signs waits{.keeps_run_waiting = true};
  EXPECT_FALSE(conduct.becomes_unfit(waits, kStart));
  conduct.answered();
  EXPECT_FALSE(conduct.becomes_unfit(waits, kStart + 10'000));
  EXPECT_FALSE(conduct.becomes_unfit({}, kStart + 15'000)) << "the run has begun";
  EXPECT_FALSE(conduct.becomes_unfit(waits, kStart + 21'000));
  EXPECT_TRUE(conduct.becomes_unfit(waits, kStart + 31'000));
}

TEST(WorkerConduct, ManyObjectionsAreAFault) {
  WorkerConduct conduct;
  for (int i = 0; i < 16; ++i) conduct.object("a frame cannot be read");
  EXPECT_FALSE(conduct.becomes_unfit({}, kStart));
  conduct.object("it said twice that it is ready");
  EXPECT_TRUE(conduct.becomes_unfit({}, kStart));
  EXPECT_EQ(conduct.fault(),
            "it does not speak the worker protocol: it said twice that it is ready");
  EXPECT_TRUE(conduct.blames_its_runs());
}

}  // namespace
}  // namespace fettle::runtime

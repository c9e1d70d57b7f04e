#include "api/study/study.h"

namespace fettle::api {

StudySpec::StudySpec() = default;
StudySpec::StudySpec(const StudySpec& other) = default;
StudySpec::StudySpec(StudySpec&& other) noexcept = default;
StudySpec& StudySpec::operator=(const StudySpec& other) = default;
StudySpec& StudySpec::operator=(StudySpec&& other) noexcept = default;
StudySpec::~StudySpec() = default;

StudyStatus::StudyStatus() = default;
StudyStatus::StudyStatus(const StudyStatus& other) = default;
StudyStatus::StudyStatus(StudyStatus&& other) noexcept = default;
StudyStatus& StudyStatus::operator=(const StudyStatus& other) = default;
StudyStatus& StudyStatus::operator=(StudyStatus&& other) noexcept = default;
StudyStatus::~StudyStatus() = default;

}  // namespace fettle::api

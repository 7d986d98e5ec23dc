/// One rate limit: at most `burst + rate·t/perS` admissions in any span of `t` seconds.
///
/// See "Admin bodies" in the operator contract.
package struct RatePolicyConfiguration: Sendable, Hashable, Codable {
    /// The highest rate and burst a policy may name.
    package static let maxAdmissions = 1_000_000_000

    /// The longest period a policy may name, in seconds: a day.
    package static let maxPeriodS = 86_400

    /// Admissions regained per period.
    package var rate: Int

    /// The period in seconds.
    package var perS: Int

    /// Admissions available at once after a rest.
    package var burst: Int

    /// Creates a policy; ranges are checked where it is read.
    package init(rate: Int, perS: Int, burst: Int) {
        self.rate = rate
        self.perS = perS
        self.burst = burst
    }

    /// What is wrong with the policy's numbers, or nil.
    package var rangeProblem: String? {
        let admissions = 1...Self.maxAdmissions
        let periods = 1...Self.maxPeriodS
        return if !admissions.contains(self.rate) {
            "rate must be from 1 to \(Self.maxAdmissions), not \(self.rate)"
        } else if !periods.contains(self.perS) {
            "perS must be from 1 to \(Self.maxPeriodS), not \(self.perS)"
        } else if !admissions.contains(self.burst) {
            "burst must be from 1 to \(Self.maxAdmissions), not \(self.burst)"
        } else {
            nil
        }
    }
}

package import GatewayCore

extension LimitKey {
    /// The bucket of a name; the same name has the same bucket.
    package static func sample(_ name: String) -> LimitKey {
        var generator = SeededGenerator(seed: SeededGenerator.seed(of: name))
        let words = [generator.next(), generator.next()]
        return LimitKey(
            Pseudonym(bytes: words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } })
        )
    }
}

extension LimitRequest {
    /// A request under policies that were never others.
    package init(tenant: LimitKey, policies: LimitPolicies, recipients: Recipients, isCollapsible: Bool) {
        self.init(
            tenant: tenant,
            history: PolicyHistory(policies),
            recipients: recipients,
            isCollapsible: isCollapsible
        )
    }

    /// The policies in force.
    package var policies: LimitPolicies { self.history.policies }
}

/// Who wants something of a device group, and until when.
package struct GroupCaller: Sendable {
    /// Who.
    package var principal: Principal
    /// The request behind it.
    package var origin: RequestOrigin
    /// When the caller stops waiting.
    package var deadline: ContinuousClock.Instant

    /// A caller.
    package init(principal: Principal, origin: RequestOrigin, deadline: ContinuousClock.Instant) {
        self.principal = principal
        self.origin = origin
        self.deadline = deadline
    }

    /// Whose groups.
    var profile: TenantProfile { self.principal.profile }
}

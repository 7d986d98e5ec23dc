/// What is left of the quotas that a send would be charged to.
package struct LimitStatus: Sendable, Hashable {
    /// One recipient's quota under one policy.
    package struct Entry: Sendable, Hashable {
        /// What the policy counts.
        package var scope: LimitScope
        /// What is left.
        package var quota: QuotaStatus

        /// A recipient's quota.
        package init(scope: LimitScope, quota: QuotaStatus) {
            self.scope = scope
            self.quota = quota
        }
    }

    /// The tenant's own quotas, one for each policy.
    package var tenant: [QuotaStatus]
    /// The quotas of each device or topic, in the request's order; empty for a dry run, which spends none of them.
    package var recipients: [[Entry]]

    /// A status.
    package init(tenant: [QuotaStatus], recipients: [[Entry]]) {
        self.tenant = tenant
        self.recipients = recipients
    }
}

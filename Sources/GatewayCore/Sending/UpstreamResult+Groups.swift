import FCMModel

extension UpstreamResult {
    /// Whether FCM has no device, or no group, of the key that was sent to.
    var isUnregistered: Bool {
        switch self.answer {
        case .failed(let code): code == .unregistered
        case .recipients(let outcomes):
            outcomes.contains { outcome in
                if case .rejected(let rejection) = outcome { rejection.code == .unregistered } else { false }
            }
        case .group: false
        }
    }

    /// The result with the number of members that the gateway knows, for an upstream that names none (TB-GROUP).
    func counting(_ members: Int) -> UpstreamResult {
        guard case .group(let counts) = self.answer, counts.failure == 0 else { return self }
        var result = self
        result.answer = .group(GroupOutcome(success: max(1, members), failure: 0, failedTokens: []))
        return result
    }
}

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

    /// The result of a message to a device group's key, in counts.
    ///
    /// Also where the upstream named the message as it does for a device: an answer's shape follows what was addressed.
    var inCounts: UpstreamResult {
        guard case .recipients(let outcomes) = self.answer, outcomes.count == 1,
            case .accepted(let acceptance) = outcomes[0]
        else { return self }
        var result = self
        result.answer = .group(
            GroupOutcome(success: 1, failure: 0, failedTokens: [], messageID: acceptance.messageID)
        )
        return result
    }

    /// The result with the number of members that the gateway knows, for an upstream that names none (TB-GROUP).
    func counting(_ members: Int) -> UpstreamResult {
        guard case .group(let counts) = self.answer, counts.failure == 0 else { return self }
        var result = self
        result.answer = .group(
            GroupOutcome(success: max(1, members), failure: 0, failedTokens: [], messageID: counts.messageID)
        )
        return result
    }
}

import FCMModel

/// Properties of every answer of `messages:send`.
enum V1AnswerProperties {
    private static let targets: [Target] =
        [.token("a"), .tokens(["a", "b", "c"]), .notificationKey("k"), .installation("f")]
        + [TopicName("t").map(Target.topic)].compactMap(\.self)

    /// Checks an answer to one call.
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input) else { return }
        let target = Self.targets[answer.choice % Self.targets.count]
        let mayBeGroup = target == .notificationKey("k") || target == .token("a") && answer.choice >= 64
        let read = {
            V1ResponseReader.read(
                answer.v1,
                for: target.kind,
                mayBeGroup: mayBeGroup,
                now: AnswerInput.now,
                keepsAnswer: target == .token("a"),
                isIdempotent: answer.choice >= 128
            )
        }
        let reading = read()
        try FuzzFinding.requireEqual(read(), reading, "read differently the second time")
        let isSuccess = (200...299).contains(answer.status)
        switch reading.answer {
        case .accepted:
            try FuzzFinding.require(isSuccess, "delivered with status \(answer.status)")
        case .group:
            try FuzzFinding.require(isSuccess && mayBeGroup, "a group's answer of what is none")
            try FuzzFinding.require(!answer.body.isEmpty, "a blank page as a group's answer")
        case .rejected(let rejection):
            if isSuccess { try FuzzFinding.requireEqual(rejection.code, .upstreamProtocol, "a 2xx is refused as") }
            if rejection.code == .unregistered {
                try FuzzFinding.require(answer.says("unregistered"), "a token is dead that nobody called so")
            }
        }
        let result =
            target.recipientCount > 1
            ? SendResult(gathering: Array(repeating: reading, count: target.recipientCount))
            : SendResult(reading)
        try SendConsequences.check(result, to: target)
    }
}

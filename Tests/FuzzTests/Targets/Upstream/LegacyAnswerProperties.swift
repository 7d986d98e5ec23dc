import FCMModel

/// Properties of every answer of a legacy upstream.
enum LegacyAnswerProperties {
    private static let targets: [Target] =
        [.token("a"), .tokens(["a", "b", "c"]), .notificationKey("k"), .installation("f")]
        + [TopicName("t").map(Target.topic), (try? TopicCondition(parsing: "'t' in topics")).map(Target.condition)]
        .compactMap(\.self)

    /// Checks an answer in JSON or text.
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let answer = AnswerInput(input) else { return }
        try Self.check(answer, to: Self.targets[answer.choice % Self.targets.count])
    }

    private static func check(_ answer: AnswerInput, to target: Target) throws(FuzzFinding) {
        let isIdempotent = answer.choice >= 128
        let read = {
            LegacyResponseReader.read(answer.legacy, for: target, now: AnswerInput.now, isIdempotent: isIdempotent)
        }
        let result = read()
        try FuzzFinding.requireEqual(read(), result, "read differently the second time")
        var codes: [OutcomeCode] = []
        switch result.answer {
        case .refused(let refusal):
            codes = [refusal.code]
        case .group:
            try FuzzFinding.requireEqual(answer.status, 200, "delivered with status")
        case .recipients(let outcomes):
            try FuzzFinding.requireEqual(outcomes.count, target.recipientCount, "outcomes for others")
            try FuzzFinding.requireEqual(answer.status, 200, "delivered with status")
            for case .rejected(let rejection) in outcomes { codes.append(rejection.code) }
        }
        if codes.contains(.unregistered) {
            // An unknown answer never retires a token (N-UNKNOWN, N-GONE).
            let isEmptyGroup = target == .notificationKey("k") && answer.body.isEmpty && answer.status == 200
            try FuzzFinding.require(
                isEmptyGroup || answer.says("notregistered"),
                "a token is dead that nobody called so"
            )
        }
        try SendConsequences.check(result, to: target)
    }
}

import FCMModel
import NIOCore

/// What holds for everything that a legacy upstream may answer with.
///
/// The first three bytes of an input choose status, target and how much of the rest is `Retry-After`.
enum LegacyAnswerProperties {
    private static let statuses = [200, 200, 200, 200, 400, 401, 403, 404, 429, 500, 503, 599, 302, 0]
    private static let targets: [Target] =
        [
            .token("a"), .tokens(["a", "b", "c"]), .notificationKey("k"), .installation("f"),
        ]
        + [TopicName("t").map(Target.topic), (try? TopicCondition(parsing: "'t' in topics")).map(Target.condition)]
        .compactMap(\.self)
    private static let now = 1_700_000_000

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard input.count >= 3 else { return }
        let status = Self.statuses[Int(input[0]) % Self.statuses.count]
        let target = Self.targets[Int(input[1]) % Self.targets.count]
        let rest = input.dropFirst(3)
        let field = rest.prefix(Int(input[2]) % 64)
        let body = Array(rest.dropFirst(field.count))
        let response = LegacyResponse(
            status: status,
            retryAfter: field.isEmpty ? nil : String(decoding: field, as: UTF8.self),
            body: ByteBuffer(bytes: body)
        )
        let result = LegacyResponseReader.read(response, for: target, now: Self.now)
        try FuzzFinding.requireEqual(
            LegacyResponseReader.read(response, for: target, now: Self.now),
            result,
            "read differently the second time"
        )
        if let delay = result.retryAfter {
            try FuzzFinding.require(delay >= 0, "a delay of \(delay) seconds")
        }
        var codes: [OutcomeCode] = []
        switch result.answer {
        case .failed(let code):
            codes = [code]
        case .group(let group):
            try FuzzFinding.require(group.success >= 0 && group.failure >= 0, "a group of less than none")
            try FuzzFinding.requireEqual(status, 200, "delivered with status")
        case .recipients(let outcomes):
            try FuzzFinding.requireEqual(outcomes.count, target.recipientCount, "outcomes for others")
            try FuzzFinding.requireEqual(status, 200, "delivered with status")
            for outcome in outcomes {
                switch outcome {
                case .accepted(let acceptance):
                    try FuzzFinding.require(!acceptance.messageID.isEmpty, "accepted without an id")
                    try FuzzFinding.require(acceptance.replacementToken != "", "replaced by nothing")
                case .rejected(let rejection):
                    codes.append(rejection.code)
                }
            }
        }
        guard codes.contains(.unregistered) else { return }
        // What can't be understood never is the death of a token (N-UNKNOWN, N-GONE).
        let isEmptyGroup = target == .notificationKey("k") && body.isEmpty && status == 200
        try FuzzFinding.require(isEmptyGroup || Self.namesDeath(body), "a token is dead that nobody called so")
    }

    /// Whether the name of the error stands in a body, in any spelling that is read as it.
    private static func namesDeath(_ body: [UInt8]) -> Bool {
        // Escapes can spell it as well.
        if body.contains(UInt8(ascii: "\\")) { return true }
        let text = String(decoding: body, as: UTF8.self)
        return text.filter { !$0.isWhitespace && $0 != "_" }.lowercased().contains("notregistered")
    }
}

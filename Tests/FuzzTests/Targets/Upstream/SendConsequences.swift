import EventLoopHTTP
import FCMModel
import HTTPTypes
import NIOCore
import StrictJSON

@testable import GatewayCore
@testable import GatewayHTTP

/// Checks everything that is made from an upstream's answer: the outcome, the audit record, metrics, the progress of a
/// reservation, and the replies of every surface.
///
/// None of it may stop the process or exceed the bounds of the readers.
enum SendConsequences {
    /// The caller of the answered message; never `nil`, unless this file has a mistake.
    static let principal: Principal? = TenantID("fuzz")
        .map { id in
            Principal(
                profile: TenantProfile(
                    tenant: Tenant(
                        id: id,
                        displayName: "Fuzz",
                        upstream: .legacy,
                        createdAt: Self.time,
                        updatedAt: Self.time
                    ),
                    legacyCredential: nil,
                    v1Credential: nil,
                    storedCredentials: [],
                    limits: LimitPolicies(),
                    pseudonymizer: Pseudonymizer(auditKey: Secret("the fuzzer's audit key"), tenantSalt: [1])
                ),
                key: APIKey.Record(
                    id: "key",
                    tenant: id,
                    name: "Fuzz",
                    digest: [],
                    scopes: [],
                    topicPrefixes: [],
                    createdAt: Self.time
                )
            )
        }
    static let time = Timestamp(microseconds: Int64(AnswerInput.now) * 1_000_000)
    static let origin = RequestOrigin(method: "POST", requestID: "request")
    /// Room for a record's names and codes, and one message id.
    private static let maxRecordBytes = 1_024
    /// A recipient of a list has a pseudonym and a code or a message id of at most 512 bytes.
    private static let maxResultBytes = Pseudonym.byteCount + 512 + 8
    private static let longestDelay = 86_400
    private static let metrics = TenantCounters(.messages, GatewayMetrics())

    /// Checks the result of a send.
    static func check(_ result: SendResult, to target: Target) throws(FuzzFinding) {
        guard let principal = Self.principal else { throw FuzzFinding("there is no caller") }
        try Self.checkBounds(result)
        let command = SendCommand(
            by: Caller(principal: principal, origin: Self.origin, deadline: .now),
            to: target,
            message: Message(),
            payloadBytes: 0
        )
        let isGroup = if case .notificationKey = target { true } else { false }
        let result = isGroup ? result.inCounts.counting(20) : result
        let outcome = SendOutcome(messageID: "message", result)
        let targets = SendTargets(target, profile: principal.profile)
        try Self.check(AuditRecord.send(command, outcome, targets: targets, at: Self.time))
        Self.metrics.count(command, result)
        try Self.checkProgress(result, count: target.recipientCount)
        try Self.checkReplies(outcome, to: target)
    }

    /// Checks a record's counts, and that encoding and decoding it gives the same record.
    static func check(_ record: AuditRecord) throws(FuzzFinding) {
        try FuzzFinding.require((0...record.recipients).contains(record.accepted), "more accepted than asked for")
        try FuzzFinding.require(record.recipients <= 2_000, "\(record.recipients) recipients")
        var bytes: [UInt8] = []
        AuditCodec.encode(record, to: &bytes)
        let bound = Self.maxRecordBytes + record.results.count * Self.maxResultBytes
        try FuzzFinding.require(bytes.count <= bound, "a record of \(bytes.count) bytes")
        let again = AuditCodec.decode(bytes, time: record.time, tenant: record.tenant)
        try FuzzFinding.requireEqual(again, record, "another record")
    }

    /// Checks that a delay is at most a day.
    static func checkDelay(_ seconds: Int?) throws(FuzzFinding) {
        try FuzzFinding.require((0...Self.longestDelay).contains(seconds ?? 0), "a delay of \(seconds ?? 0) seconds")
    }

    /// Checks that a reply has a valid status and is strict JSON.
    static func checkJSON(_ body: ByteBuffer, status: Int) throws(FuzzFinding) {
        try FuzzFinding.require((200...599).contains(status), "a reply with status \(status)")
        let document = try? JSONDocument(parsing: body, limits: JSONLimits(maxMembers: 100_000))
        try FuzzFinding.require(document?.root.members != nil, "a reply that is no JSON: \(String(buffer: body))")
    }

    // MARK: Parts

    private static func checkBounds(_ result: SendResult) throws(FuzzFinding) {
        try Self.checkDelay(result.retryAfter)
        try FuzzFinding.require((result.upstreamCode ?? "").utf8.count <= 40, "a long code: \(result)")
        switch result.answer {
        case .refused(let refusal):
            try Self.checkDelay(refusal.retryAfter)
        case .group(let group):
            try FuzzFinding.require(
                group.failedTokens.count <= AnswerBounds.maxMembers
                    && group.failedTokens.allSatisfy(AnswerBounds.isToken),
                "failed members that are none"
            )
        case .recipients(let outcomes):
            for outcome in outcomes {
                switch outcome {
                case .accepted(let acceptance):
                    try FuzzFinding.require(AnswerBounds.isMessageID(acceptance.messageID), "an id that is none")
                    try FuzzFinding.require(
                        acceptance.replacementToken.map(AnswerBounds.isToken) ?? true,
                        "a replacement that is no token"
                    )
                case .rejected(let rejection):
                    try Self.checkDelay(rejection.retryAfter)
                }
            }
        }
    }

    private static func checkProgress(_ result: SendResult, count: Int) throws(FuzzFinding) {
        var progress = SendReservation.Progress(count: count)
        for (place, outcome) in result.outcomes(count: count).enumerated() {
            progress.start([place])
            progress.finish(place, outcome)
        }
        try FuzzFinding.requireEqual(
            SendReservation.Progress(progress.bytes, count: count),
            progress,
            "another progress"
        )
    }

    private static func checkReplies(_ outcome: SendOutcome, to target: Target) throws(FuzzFinding) {
        let rest = SendMessage.AnswerWriter(target: target).reply(to: outcome)
        try Self.checkJSON(rest.body, status: rest.status)
        let shape = LegacyReplyWriter.Shape(target: target)
        let legacy = LegacyReplyWriter(shape: shape, format: .json, multicastID: 1).reply(to: outcome)
        try Self.checkDelay(legacy.retryAfter)
        try Self.checkJSON(legacy.body, status: legacy.status)
        let form = LegacyReplyWriter(shape: shape, format: .form, multicastID: 1).reply(to: outcome)
        let lines = String(buffer: form.body).split(separator: "\n", omittingEmptySubsequences: false)
        try FuzzFinding.require(
            lines.count == 1 && (lines[0].hasPrefix("id=") || lines[0].hasPrefix("Error="))
                || lines.count == 2 && lines[0].hasPrefix("id=") && lines[1].hasPrefix("registration_id="),
            "a form is answered: \(lines)"
        )
        let v1 = V1ReplyWriter(project: "p").reply(to: outcome)
        try Self.checkDelay(v1.retryAfter)
        if outcome.result.passThrough == nil { try Self.checkJSON(v1.body, status: v1.status) }
        for reply in [rest, legacy, form, v1] {
            try FuzzFinding.requireEqual(Reply(storedBytes: reply.storedBytes), reply, "another reply is replayed")
        }
    }
}

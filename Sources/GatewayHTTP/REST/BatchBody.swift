package import FCMModel
package import GatewayCore
import NIOCore
import StrictJSON

/// The body of a new batch, read and checked.
struct BatchBody {
    private static let names = [
        "message", "to", "open", "send_at", "window_s", "expires_in_s", "priority", "on_unknown", "canary", "dry_run",
        "keep", "label", "avoid_peaks",
    ]
    /// The longest time ahead of a due time, and the longest life of a batch, in seconds.
    private static let longest = 30 * 86_400

    private(set) var draft = Batches.Draft()
    private var problems = FieldProblems()
    private var isOpen = false

    /// Reads a body. Throws all its problems at once.
    init(_ body: ByteBuffer, _ members: JSONMembers, at now: Timestamp) throws(Refusal) {
        self.draft.request = Array(body.readableBytesView)
        var names: Set<String> = []
        for member in members where !self.problems.isFull {
            names.insert(member.key)
            self.read(member.key, member.value, at: JSONPointer().appending(member.key), now)
        }
        if !names.contains("message") {
            self.problems.report(.invalidField, at: JSONPointer().appending("message"), "This must be given")
        }
        if names.contains("to") == self.isOpen {
            self.problems.report(.invalidTarget, at: JSONPointer(), "Name the recipients in to, or open the batch")
        }
        guard self.problems.list.isEmpty else { throw Refusal(self.problems.list) }
    }

    private mutating func read(_ key: String, _ value: JSONValue, at pointer: JSONPointer, _ now: Timestamp) {
        switch key {
        case "message": self.readMessage(value, at: pointer)
        case "to": self.readRecipients(value, at: pointer)
        case "open": self.isOpen = self.problems.bool(value, at: pointer) ?? false
        case "send_at":
            guard let time = value.string.flatMap({ Timestamp(rfc3339: $0) }),
                time <= now.advanced(by: .seconds(Self.longest))
            else {
                self.problems.report(
                    .invalidField,
                    at: pointer,
                    "This must be a time in RFC 3339 form, such as 2026-12-01T17:58:00Z, at most 30 days ahead"
                )
                return
            }
            self.draft.dueAt = time
        case "window_s":
            self.draft.options.windowSeconds = self.problems.integer(value, in: 1...Self.longest, at: pointer)
        case "expires_in_s":
            self.draft.options.lifetimeSeconds =
                self.problems.integer(value, in: 1...Self.longest, at: pointer) ?? Self.longest
        case "priority":
            self.draft.options.priority = self.problems.word(value, as: Batch.Priority.self, at: pointer) ?? .normal
        case "on_unknown":
            self.draft.options.resendsUnknown = self.problems.word(value, as: OnUnknown.self, at: pointer) == .resend
        case "canary": self.readCanary(value, at: pointer)
        case "dry_run": self.draft.options.isDryRun = self.problems.bool(value, at: pointer) ?? false
        case "avoid_peaks": self.draft.options.avoidsPeaks = self.problems.bool(value, at: pointer) ?? false
        case "keep": self.draft.options.keepsAccepted = self.problems.word(value, as: Keep.self, at: pointer) == .all
        case "label": self.draft.label = self.problems.label(value, at: pointer)
        default: self.problems.unknown(key, among: Self.names)
        }
    }

    private mutating func readMessage(_ value: JSONValue, at pointer: JSONPointer) {
        guard let members = self.problems.members(value, at: pointer) else { return }
        var reader = SendBody.Reader()
        for member in members { reader.readPayload(member) }
        reader.finishBlocks()
        self.problems.add(reader.problems, in: pointer)
        self.draft.message = Array(value.canonicalText.utf8)
    }

    private mutating func readRecipients(_ value: JSONValue, at pointer: JSONPointer) {
        guard let members = self.problems.members(value, at: pointer) else { return }
        var reader = SendBody.Reader()
        for member in members {
            if let count = member.value.elements?.count, count > Target.maxRecipients {
                let detail = "A batch takes at most \(Target.maxRecipients) recipients at once; open it, and add parts"
                return self.problems.report(.batchTooLarge, at: pointer.appending(member.key), detail)
            }
            reader.readRecipients(member, among: SendBody.Reader.listedNames)
        }
        let target = reader.finishedTarget()
        self.problems.add(reader.problems, in: pointer)
        if let target { self.draft.address(target) }
    }

    private mutating func readCanary(_ value: JSONValue, at pointer: JSONPointer) {
        guard let members = self.problems.members(value, at: pointer) else { return }
        var canary = Batch.Canary(recipients: 0, maxRejectedPercent: 5, holdSeconds: 60)
        for member in members {
            let place = pointer.appending(member.key)
            switch member.key {
            case "recipients":
                canary.recipients = self.problems.integer(member.value, in: 1...1_000_000, at: place) ?? 1
            case "max_rejected_percent":
                canary.maxRejectedPercent = self.problems.integer(member.value, in: 0...100, at: place) ?? 0
            case "hold_s": canary.holdSeconds = self.problems.integer(member.value, in: 0...86_400, at: place) ?? 0
            default:
                self.problems.unknown(member.key, in: pointer, among: ["recipients", "max_rejected_percent", "hold_s"])
            }
        }
        if canary.recipients == 0 {
            self.problems.report(.invalidField, at: pointer.appending("recipients"), "This must be given")
        }
        self.draft.options.canary = canary
    }

    private enum OnUnknown: String, CaseIterable {
        case report, resend
    }

    private enum Keep: String, CaseIterable {
        case failures, all
    }
}

extension Batches.Draft {
    /// A message that is sent later by itself: the request as it was read.
    init(_ target: Target, _ members: JSONMembers, request: [UInt8]) {
        self.init()
        (self.isMessage, self.options.keepsAccepted, self.request) = (true, true, request)
        var writer = JSONWriter()
        writer.beginObject()
        for member in members where !SendBody.Reader.isTarget(member) {
            writer.key(member.key)
            writer.value(member.value)
        }
        writer.endObject()
        self.message = Array(writer.finish().readableBytesView)
        self.address(target)
    }

    mutating func address(_ target: Target) {
        self.kind = target.kind
        self.recipients =
            switch target {
            case .tokens(let texts), .installations(let texts): texts
            case .token(let text), .installation(let text), .notificationKey(let text), .deviceGroup(let text): [text]
            case .topic(let topic): [topic.text]
            case .condition(let condition): [condition.canonical]
            }
    }
}

/// The body of a part: recipients of one kind.
struct PartBody {
    let kind: Target.Kind
    let recipients: [String]

    init(_ members: JSONMembers) throws(Refusal) {
        var reader = SendBody.Reader(maxRecipients: Batches.maxPartRecipients)
        for member in members { reader.readRecipients(member, among: [.tokens, .fids]) }
        let target = reader.finishedTarget()
        guard let target, let texts = target.listed, reader.problems.list.isEmpty else {
            throw Refusal(reader.problems.list)
        }
        (self.kind, self.recipients) = (target.kind, texts)
    }
}

/// The stored message of a batch.
package enum BatchMessage {
    /// Reads the message, and returns the command that sends it to some recipients.
    package static func command(
        _ json: [UInt8],
        of batch: Batch,
        to target: Target,
        by caller: Caller,
        at now: Timestamp
    ) throws(Refusal) -> SendCommand {
        var reader = SendBody.Reader()
        let members = try JSONBody.members(of: ByteBuffer(bytes: json), contentType: "application/json")
        for member in members { reader.readPayload(member) }
        reader.finishBlocks()
        guard reader.problems.list.isEmpty else { throw Refusal(reader.problems.list) }
        var message = reader.message
        if batch.options.isDryRun { message.dryRun = true }
        return try SendCommand(message, to: target, by: caller, at: now)
    }
}

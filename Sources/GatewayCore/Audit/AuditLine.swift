package import NIOCore
package import StrictJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One line of a second sink or of an export: a JSON object that is written in exactly one way, so that nothing can be
/// hidden in one.
///
/// A sink has records and truncation markers as they came, and each checkpoint behind what it covers. An export begins with
/// ``export(_:)``, tells then what was signed and how the chains end, then stretches of records by rising place, and ends with
/// ``end(_:)``.
package enum AuditLine: Sendable, Hashable {
    case export(AuditExportHead)
    case checkpoint(SignedCheckpoint)
    /// Where a chain begins whose oldest records were removed.
    ///
    /// In a sink, `ended` tells how the chain ended when nothing of it is left to tell that.
    case truncation(AuditTruncation, ended: AuditHead.State?)
    /// How a chain ends.
    case head(AuditHead)
    /// What follows are the records of a part of a chain.
    case stretch(AuditStretch)
    case record(ChainedAuditRecord)
    case hidden(HiddenAuditRecords)
    case end(AuditExportSummary)
}

/// What an export is.
package struct AuditExportHead: Sendable, Hashable {
    /// The version of the form.
    static let version = 2

    /// Whose records can be read, from when on and before when; `nil` where that is not narrowed.
    package var tenant: String?
    package var from: Timestamp?
    package var to: Timestamp?
    /// Whether a process wrote to the store meanwhile.
    package var isLive: Bool

    package init(tenant: String? = nil, from: Timestamp? = nil, to: Timestamp? = nil, isLive: Bool) {
        (self.tenant, self.from, self.to, self.isLive) = (tenant, from, to, isLive)
    }

    /// Whether every chain is there as a whole.
    package var isWhole: Bool { self.tenant == nil && self.from == nil && self.to == nil }

    /// Whether a record is one that can be read.
    func shows(_ entry: AuditEntry) -> Bool {
        if let tenant = self.tenant, entry.tenant != tenant { return false }
        if let from = self.from, entry.time < from { return false }
        if let to = self.to, entry.time >= to { return false }
        return true
    }
}

/// Neighbouring records of a chain in an export, between two places that are signed.
package struct AuditStretch: Sendable, Hashable {
    /// The chain's end before the first record.
    package var start: AuditChain
    package var through: Int

    package init(start: AuditChain, through: Int) {
        (self.start, self.through) = (start, through)
    }
}

/// How much an export has.
package struct AuditExportSummary: Sendable, Hashable {
    /// Records that can be read.
    package var records = 0
    /// Records of which only the digest is there.
    package var hidden = 0
    /// Records before the chains' beginnings, which were removed because of their age.
    package var removed = 0
    package var checkpoints = 0

    package init(records: Int = 0, hidden: Int = 0, removed: Int = 0, checkpoints: Int = 0) {
        (self.records, self.hidden, self.removed) = (records, hidden, removed)
        self.checkpoints = checkpoints
    }
}

// MARK: Writing

extension AuditLine {
    /// How every line of a checkpoint begins.
    package static let checkpointPrefix = Array(#"{"type":"checkpoint","#.utf8)

    /// The line, without its end.
    package var text: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 768)
        writer.beginObject()
        switch self {
        case .export(let head):
            writer.member("fcm_gateway_audit_export", AuditExportHead.version)
            if let tenant = head.tenant { writer.member("tenant", tenant) }
            if let from = head.from { writer.members("from", "from_us", from) }
            if let to = head.to { writer.members("to", "to_us", to) }
            writer.member("live", head.isLive)
        case .checkpoint(let checkpoint):
            writer.member("type", "checkpoint")
            writer.member("number", checkpoint.number)
            writer.member("time", checkpoint.content?.time.rfc3339 ?? "")
            writer.member("content", String(decoding: checkpoint.text, as: UTF8.self))
            writer.member("signature", Data(checkpoint.signature).base64EncodedString())
        case .truncation(let truncation, let ended):
            writer.member("type", "truncation")
            writer.place(truncation.writer, truncation.sequence)
            writer.members("time", "time_us", truncation.time)
            if let ended { writer.member("ended", ended.rawValue) }
            writer.member("hash", Hex.text(truncation.hash))
            writer.member("signature", Data(truncation.signature).base64EncodedString())
        case .head(let head):
            writer.member("type", "head")
            writer.place(head.writer, head.sequence)
            writer.member("state", head.state.rawValue)
            writer.member("hash", Hex.text(head.hash))
            writer.member("seal", Hex.text(head.seal))
        case .stretch(let stretch):
            writer.member("type", "stretch")
            writer.member("writer", stretch.start.writer)
            writer.member("after", stretch.start.sequence)
            writer.member("hash", Hex.text(stretch.start.hash))
            writer.member("through", stretch.through)
        case .record(let record):
            writer.member("type", "record")
            writer.members(of: record, for: .verifier)
        case .hidden(let hidden):
            writer.member("type", "hidden")
            writer.place(hidden.writer, hidden.sequence)
            writer.member("digests", Data(hidden.digests.joined()).base64EncodedString())
            writer.member("hash", Hex.text(hidden.hash))
        case .end(let summary):
            writer.member("type", "end")
            writer.member("records", summary.records)
            writer.member("hidden", summary.hidden)
            writer.member("removed", summary.removed)
            writer.member("checkpoints", summary.checkpoints)
        }
        writer.endObject()
        return writer.finish()
    }
}

/// Who is shown a record as JSON.
package enum AuditReader: Sendable {
    /// A tenant, which sees no places: they count the records of all tenants.
    case tenant
    case admin
    /// Whoever checks the record: all is there that its hash covers.
    case verifier
}

extension JSONWriter {
    /// Writes a record's members into an object.
    package mutating func members(of chained: ChainedAuditRecord, for reader: AuditReader) {
        let record = chained.record
        let showsPlace = reader != .tenant
        if showsPlace { self.place(chained.writer, chained.sequence) }
        if reader == .verifier {
            self.members("time", "time_us", record.time)
        } else {
            self.member("time", record.time.rfc3339)
        }
        if let tenant = record.tenant { self.member("tenant", tenant) }
        if showsPlace, record.tenant != nil || record.tenantUID != 0 {
            self.member("tenant_uid", Hex.text(AuditCodec.bytes(of: record.tenantUID)))
        }
        self.member("principal", record.principal)
        if !record.method.isEmpty { self.member("method", record.method) }
        self.member("action", record.action)
        self.member("outcome", record.outcome.rawValue)
        if let code = record.code { self.member("code", code) }
        if let messageID = record.messageID { self.member("message", messageID) }
        if record.hasTargets { self.targets(of: record) }
        if let object = record.object { self.member("object", object) }
        if let upstreamCode = record.upstreamCode { self.member("upstream_code", upstreamCode) }
        if let fcmMessageID = record.fcmMessageID { self.member("fcm_message_id", fcmMessageID) }
        if !record.requestID.isEmpty { self.member("request_id", record.requestID) }
        if let traceID = record.traceID { self.member("trace_id", traceID) }
        self.member("hash", Hex.text(chained.hash))
    }

    private mutating func targets(of record: AuditRecord) {
        self.member("target_kind", record.targetKind)
        self.member("recipients", record.recipients)
        self.member("accepted", record.accepted)
        self.member("bytes", record.bytes)
        let targets = stride(from: 0, to: record.targets.count, by: Pseudonym.byteCount)
            .map { Hex.text(record.targets[$0..<min($0 + Pseudonym.byteCount, record.targets.count)]) }
        self.key("targets")
        self.beginArray()
        for target in targets { self.string(target) }
        self.endArray()
        guard !record.results.isEmpty else { return }
        self.key("results")
        self.beginArray()
        let first = targets.count - record.results.count
        for (index, result) in record.results.enumerated() {
            self.beginObject()
            if first + index >= 0 { self.member("target", targets[first + index]) }
            self.member("outcome", (result.code == nil ? AuditRecord.Outcome.accepted : .rejected).rawValue)
            if let code = result.code { self.member("code", code) }
            if let fcmMessageID = result.fcmMessageID { self.member("fcm_message_id", fcmMessageID) }
            self.endObject()
        }
        self.endArray()
    }

    fileprivate mutating func place(_ writer: Int, _ sequence: Int) {
        self.member("writer", writer)
        self.member("seq", sequence)
    }

    /// A moment for people, and exactly.
    fileprivate mutating func members(_ key: StaticString, _ exactKey: StaticString, _ time: Timestamp) {
        self.member(key, time.rfc3339)
        self.key(exactKey)
        self.integer(time.microseconds)
    }
}

extension AuditRecord {
    fileprivate var hasTargets: Bool {
        !self.targetKind.isEmpty || !self.targets.isEmpty || !self.results.isEmpty
            || (self.recipients, self.accepted, self.bytes) != (0, 0, 0)
    }
}

// MARK: Reading

extension AuditLine {
    /// The line of a text without its end; `nil` for one that the gateway does not write.
    package init?(_ text: ByteBuffer) {
        guard let root = try? JSONDocument(parsing: text, limits: Parser.limits).root, let line = Parser.line(root)
        else { return nil }
        // One comparison in place of a check of every member for its only form.
        guard line.text == text else { return nil }
        self = line
    }
}

private enum Parser {
    /// A list of a thousand recipients has some thousand members.
    static let limits = JSONLimits(maxMembers: 50_000, maxElements: 50_000, maxSpecialCharacters: 1 << 20)
    /// Places that no gateway gets to; somebody may have written any.
    private static let placeLimit = 1 << 60

    static func line(_ root: JSONValue) -> AuditLine? {
        switch root.text("type") {
        case nil: self.exportHead(root).map { .export($0) }
        case "checkpoint": self.checkpoint(root).map { .checkpoint($0) }
        case "truncation": self.truncation(root)
        case "head": self.head(root).map { .head($0) }
        case "stretch": self.stretch(root).map { .stretch($0) }
        case "record": self.record(root).map { .record($0) }
        case "hidden": self.hidden(root).map { .hidden($0) }
        case "end": self.summary(root).map { .end($0) }
        default: nil
        }
    }

    private static func exportHead(_ root: JSONValue) -> AuditExportHead? {
        guard root.integer("fcm_gateway_audit_export") == AuditExportHead.version, let isLive = root["live"]?.bool
        else { return nil }
        return AuditExportHead(
            tenant: root.text("tenant"),
            from: root.time("from_us"),
            to: root.time("to_us"),
            isLive: isLive
        )
    }

    private static func checkpoint(_ root: JSONValue) -> SignedCheckpoint? {
        guard let number = root.integer("number"), let text = root.text("content"),
            let signature = root.base64("signature")
        else { return nil }
        return SignedCheckpoint(number: number, text: Array(text.utf8), signature: signature)
    }

    private static func place(_ root: JSONValue, _ key: String = "seq") -> AuditPosition? {
        guard let writer = root.integer("writer"), let sequence = root.integer(key),
            (0..<self.placeLimit).contains(writer), (0..<self.placeLimit).contains(sequence)
        else { return nil }
        return AuditPosition(writer: writer, sequence: sequence)
    }

    private static func truncation(_ root: JSONValue) -> AuditLine? {
        guard let place = self.place(root), let time = root.time("time_us"), let hash = root.hex("hash"),
            let signature = root.base64("signature")
        else { return nil }
        let truncation = AuditTruncation(
            writer: place.writer,
            sequence: place.sequence,
            hash: hash,
            time: time,
            signature: signature
        )
        return .truncation(truncation, ended: root.text("ended").flatMap { AuditHead.State(rawValue: $0) })
    }

    private static func head(_ root: JSONValue) -> AuditHead? {
        guard let place = self.place(root), let hash = root.hex("hash"), let seal = root.hex("seal"),
            let state = root.text("state").flatMap({ AuditHead.State(rawValue: $0) })
        else { return nil }
        return AuditHead(writer: place.writer, sequence: place.sequence, hash: hash, state: state, seal: seal)
    }

    private static func stretch(_ root: JSONValue) -> AuditStretch? {
        guard let start = self.place(root, "after"), let end = self.place(root, "through"), let hash = root.hex("hash")
        else { return nil }
        let chain = AuditChain(writer: start.writer, sequence: start.sequence, hash: hash)
        return AuditStretch(start: chain, through: end.sequence)
    }

    private static func hidden(_ root: JSONValue) -> HiddenAuditRecords? {
        guard let place = self.place(root), let bytes = root.base64("digests"), let hash = root.hex("hash"),
            (1...HiddenAuditRecords.maxCount * 32).contains(bytes.count), bytes.count.isMultiple(of: 32)
        else { return nil }
        return HiddenAuditRecords(
            writer: place.writer,
            sequence: place.sequence,
            digests: stride(from: 0, to: bytes.count, by: 32).map { Array(bytes[$0..<($0 + 32)]) },
            hash: hash
        )
    }

    private static func summary(_ root: JSONValue) -> AuditExportSummary? {
        guard let records = root.integer("records"), let hidden = root.integer("hidden"),
            let removed = root.integer("removed"), let checkpoints = root.integer("checkpoints")
        else { return nil }
        return AuditExportSummary(records: records, hidden: hidden, removed: removed, checkpoints: checkpoints)
    }

    private static func record(_ root: JSONValue) -> ChainedAuditRecord? {
        guard let place = self.place(root), let time = root.time("time_us"), let hash = root.hex("hash"),
            let principal = root.text("principal"), let action = root.text("action"),
            let outcome = root.text("outcome").flatMap({ AuditRecord.Outcome(rawValue: $0) })
        else { return nil }
        var record = AuditRecord(
            time: time,
            tenant: root.text("tenant"),
            principal: principal,
            action: action,
            outcome: outcome,
            requestID: root.text("request_id") ?? ""
        )
        for byte in root.hex("tenant_uid") ?? [] { record.tenantUID = record.tenantUID << 8 | UInt64(byte) }
        if let targets = root["targets"]?.elements {
            for target in targets {
                guard let part = target.string.flatMap({ Hex.bytes($0) }) else { return nil }
                record.targets += part
            }
        }
        if let results = root["results"]?.elements {
            record.results = results.map {
                AuditRecord.TargetResult(code: $0.text("code"), fcmMessageID: $0.text("fcm_message_id"))
            }
        }
        record.method = root.text("method") ?? ""
        record.targetKind = root.text("target_kind") ?? ""
        record.recipients = root.integer("recipients") ?? 0
        record.accepted = root.integer("accepted") ?? 0
        record.bytes = root.integer("bytes") ?? 0
        (record.object, record.code, record.upstreamCode) =
            (root.text("object"), root.text("code"), root.text("upstream_code"))
        (record.fcmMessageID, record.messageID) = (root.text("fcm_message_id"), root.text("message"))
        record.traceID = root.text("trace_id")
        return ChainedAuditRecord(
            writer: place.writer,
            sequence: place.sequence,
            entry: AuditEntry(record),
            hash: hash
        )
    }
}

/// Members by their kinds; `nil` for another kind or none.
extension JSONValue {
    fileprivate func text(_ key: String) -> String? { self[key]?.string }

    fileprivate func integer(_ key: String) -> Int? { self[key]?.number?.integer }

    fileprivate func time(_ key: String) -> Timestamp? {
        self.integer(key).map { Timestamp(microseconds: Int64($0)) }
    }

    fileprivate func hex(_ key: String) -> [UInt8]? { self.text(key).flatMap { Hex.bytes($0) } }

    fileprivate func base64(_ key: String) -> [UInt8]? {
        self.text(key).flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) }
    }
}

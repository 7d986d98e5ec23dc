import Foundation
import GatewayCore
import GatewayService
import NIOCore
import StrictJSON

/// What the lines of an export say: one JSON object each.
///
/// A line is good only if it is exactly what the gateway writes for what it says, so nothing can be hidden in one.
enum AuditExportLine {
    /// The first line.
    struct Head: Equatable {
        /// The version of the form.
        static let version = 1

        /// Whose records can be read; `nil` for everybody's.
        var tenant: String?
        /// Only records at or after this moment, by its text.
        var from: String?
        /// Only records before this moment, by its text.
        var to: String?
        /// Whether a process wrote to the store meanwhile.
        var isLive: Bool

        /// Whether every chain is there as a whole.
        var isWhole: Bool { self.from == nil && self.to == nil }
    }

    /// What a line says.
    enum Content {
        /// It is the first.
        case head(Head)
        /// A part of the export.
        case item(AuditExportItem)
        /// It is the last.
        case end(AuditExporter.Summary)
    }

    // MARK: Writing

    /// The first line.
    static func head(_ head: Head) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 128)
        writer.beginObject()
        writer.member("fcm_gateway_audit_export", Head.version)
        if let tenant = head.tenant { writer.member("tenant", tenant) }
        if let from = head.from { writer.member("from", from) }
        if let to = head.to { writer.member("to", to) }
        writer.member("live", head.isLive)
        writer.endObject()
        return writer.finish()
    }

    /// The last line.
    static func end(_ summary: AuditExporter.Summary) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 64)
        writer.beginObject()
        writer.member("records", summary.records)
        writer.member("hidden", summary.hidden)
        writer.member("removed", summary.removed)
        writer.endObject()
        return writer.finish()
    }

    /// A part.
    static func item(_ item: AuditExportItem) -> ByteBuffer {
        switch item {
        case .checkpoint(let checkpoint): self.checkpoint(checkpoint)
        case .chain(let chain): self.chain(chain)
        case .record(let record): self.record(record)
        case .hidden(let record): self.hidden(record)
        }
    }

    private static func checkpoint(_ checkpoint: SignedCheckpoint) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 1_024)
        writer.beginObject()
        writer.member("checkpoint", checkpoint.number)
        writer.member("time", checkpoint.content?.time.rfc3339 ?? "")
        writer.member("content", String(decoding: checkpoint.text, as: UTF8.self))
        writer.member("signature", Data(checkpoint.signature).base64EncodedString())
        writer.endObject()
        return writer.finish()
    }

    private static func chain(_ part: AuditExportChain) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.member("chain", part.start.writer)
        writer.member("after", part.start.sequence)
        writer.member("hash", Hex.text(part.start.hash))
        if let cut = part.cut {
            writer.key("removed")
            writer.beginObject()
            writer.member("time", cut.time.rfc3339)
            writer.key("time_us")
            writer.integer(cut.time.microseconds)
            writer.member("signature", Data(cut.signature).base64EncodedString())
            writer.endObject()
        }
        writer.member("through", part.through)
        writer.key("head")
        writer.beginObject()
        writer.member("seq", part.head.sequence)
        writer.member("hash", Hex.text(part.head.hash))
        writer.member("state", part.head.state.rawValue)
        writer.member("seal", Hex.text(part.head.seal))
        writer.endObject()
        writer.endObject()
        return writer.finish()
    }

    private static func hidden(_ record: HiddenAuditRecord) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 224)
        writer.beginObject()
        writer.member("writer", record.writer)
        writer.member("seq", record.sequence)
        writer.member("digest", Hex.text(record.digest))
        writer.member("hash", Hex.text(record.hash))
        writer.endObject()
        return writer.finish()
    }

    /// A record that can be read.
    static func record(_ chained: ChainedAuditRecord) -> ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 640)
        writer.beginObject()
        AuditRecordText.write(chained, to: &writer)
        writer.endObject()
        return writer.finish()
    }

    // MARK: Reading

    /// What a line says; `nil` for one that the gateway does not write.
    static func content(of line: ByteBuffer) -> Content? {
        guard let root = try? JSONDocument(parsing: line).root, let content = self.content(of: root) else { return nil }
        let again: ByteBuffer =
            switch content {
            case .head(let head): self.head(head)
            case .item(let item): self.item(item)
            case .end(let summary): self.end(summary)
            }
        return again == line ? content : nil
    }

    private static func content(of root: StrictJSON.JSONValue) -> Content? {
        if let version = root.integer("fcm_gateway_audit_export") {
            guard version == Head.version, let isLive = root["live"]?.bool else { return nil }
            let (tenant, from, to) = (root.text("tenant"), root.text("from"), root.text("to"))
            return .head(Head(tenant: tenant, from: from, to: to, isLive: isLive))
        }
        if root["checkpoint"] != nil { return self.checkpoint(root).map { .item(.checkpoint($0)) } }
        if root["chain"] != nil { return self.chain(root).map { .item(.chain($0)) } }
        if root["digest"] != nil { return self.hidden(root).map { .item(.hidden($0)) } }
        if root["action"] != nil { return AuditRecordText.read(root).map { .item(.record($0)) } }
        guard let records = root.integer("records"), let hidden = root.integer("hidden"),
            let removed = root.integer("removed")
        else { return nil }
        return .end(AuditExporter.Summary(records: records, hidden: hidden, removed: removed))
    }

    private static func checkpoint(_ root: StrictJSON.JSONValue) -> SignedCheckpoint? {
        guard let number = root.integer("checkpoint"), let text = root.text("content"),
            let signature = root.base64("signature")
        else { return nil }
        return SignedCheckpoint(number: number, text: Array(text.utf8), signature: signature)
    }

    private static func chain(_ root: StrictJSON.JSONValue) -> AuditExportChain? {
        guard let writer = root.integer("chain"), let after = root.integer("after"), let hash = root.hex("hash"),
            let through = root.integer("through"), let head = root["head"], let end = head.integer("seq"),
            let endHash = head.hex("hash"), let seal = head.hex("seal"),
            let state = head.text("state").flatMap({ AuditHead.State(rawValue: $0) })
        else { return nil }
        var cut: AuditCut?
        if let removed = root["removed"] {
            guard let time = removed.integer("time_us"), let signature = removed.base64("signature") else { return nil }
            let moment = Timestamp(microseconds: Int64(time))
            cut = AuditCut(writer: writer, sequence: after, hash: hash, time: moment, signature: signature)
        }
        return AuditExportChain(
            start: AuditChain(writer: writer, sequence: after, hash: hash),
            cut: cut,
            through: through,
            head: AuditHead(writer: writer, sequence: end, hash: endHash, state: state, seal: seal)
        )
    }

    private static func hidden(_ root: StrictJSON.JSONValue) -> HiddenAuditRecord? {
        guard let writer = root.integer("writer"), let sequence = root.integer("seq"),
            let digest = root.hex("digest"), let hash = root.hex("hash")
        else { return nil }
        return HiddenAuditRecord(writer: writer, sequence: sequence, digest: digest, hash: hash)
    }
}

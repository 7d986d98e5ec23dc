import FCMModel
import GatewayCore
import NIOCore
import StrictJSON

/// Explains a send: its requests, the members that its fields become, and any reason for a refusal.
///
/// It holds no credential.
struct SendExplanation {
    /// Something that the caller may not expect.
    struct Warning {
        /// The field that it is about (RFC 6901); empty for the message as a whole.
        var pointer: String
        var detail: String
    }

    /// The most requests that are shown. By HTTP v1, a list may become a thousand.
    static let maxShownRequests = 10
    /// The most bytes of all shown bodies together. The first request is shown at any size.
    private static let maxShownBytes = 64 * 1024
    /// The longest `apns-collapse-id` that Apple accepts.
    private static let maxAppleCollapseBytes = 64

    private let upstream: UpstreamKind
    private let target: Target
    private let requestCount: Int
    private let requests: [Message.Request]
    private let fields: [FieldTrace]
    private let payloadBytes: Int
    /// The refusal that the send would get with any quota, or `nil`.
    private let refusal: Refusal?
    /// The rest of the quotas that it would be charged to.
    private let limits: LimitStatus
    private let warnings: [Warning]

    /// Explains the send of a message as the caller wrote it, after the pipeline's preview.
    init(of message: Message, _ command: SendCommand, _ preview: SendPipeline.Preview) {
        let (target, payloadBytes) = (command.target, command.payloadBytes)
        let isTooBig = payloadBytes > target.maxPayloadBytes
        let tooBig = isTooBig ? Refusal.messageTooBig(payloadBytes, to: target) : nil
        let kind = command.profile.tenant.upstream
        let traces = preview.requests.first.map { FieldTrace.all(of: message, in: $0.body, of: kind) } ?? []
        self.upstream = kind
        self.target = target
        self.payloadBytes = payloadBytes
        self.refusal = preview.refusal ?? tooBig
        self.limits = preview.limits
        self.requests = self.refusal == nil ? Self.shown(preview.requests) : []
        self.requestCount = self.requests.isEmpty ? 0 : kind.callCount(of: target)
        self.fields = [FieldTrace(pointer: "/\(target.kind.fieldName)", becomes: [kind.member(for: target)])] + traces
        self.warnings = Self.warnings(message, to: target, traces, command.profile)
    }

    private static func shown(_ requests: [Message.Request]) -> [Message.Request] {
        var byteCount = 0
        let shown = requests.prefix { request in
            byteCount += request.body.readableBytes
            return byteCount <= Self.maxShownBytes
        }
        return Array(requests.prefix(max(shown.count, 1)))
    }

    private static func warnings(
        _ message: Message,
        to target: Target,
        _ traces: [FieldTrace],
        _ profile: TenantProfile
    ) -> [Warning] {
        var warnings: [Warning] = []
        let repeated = target.repeatedRecipients
        if repeated > 0 {
            let detail = "\(repeated) entries repeat earlier recipients, which would get the message again"
            warnings.append(Warning(pointer: "/\(target.kind.fieldName)", detail: detail))
        }
        if message.notification == nil, message.data.isEmpty, !message.contentAvailable {
            let detail = "The message has neither a notification nor data, so a device shows nothing"
            warnings.append(Warning(pointer: "", detail: detail))
        }
        if let gap = profile.missingCredential { warnings.append(Warning(pointer: "", detail: gap)) }
        for trace in traces where trace.becomes.isEmpty {
            let detail = "This has no effect here and is not sent to the upstream"
            warnings.append(Warning(pointer: trace.pointer, detail: detail))
        }
        if profile.tenant.upstream == .v1, let key = message.collapseKey,
            key.utf8.count > Self.maxAppleCollapseBytes
        {
            let detail =
                "The collapse key has more than \(Self.maxAppleCollapseBytes) bytes, so Apple devices get the message without it"
            warnings.append(Warning(pointer: "/collapse_key", detail: detail))
        }
        return warnings
    }
}

extension UpstreamKind {
    fileprivate func member(for target: Target) -> String {
        switch (self, target) {
        case (.legacy, .tokens): "/registration_ids"
        case (.legacy, .condition): "/condition"
        case (.legacy, .token), (.legacy, .topic), (.legacy, .notificationKey), (.legacy, .deviceGroup),
            (.legacy, .installation), (.legacy, .installations):
            "/to"
        case (.v1, .token), (.v1, .tokens), (.v1, .notificationKey), (.v1, .deviceGroup): "/message/token"
        case (.v1, .installation), (.v1, .installations): "/message/fid"
        case (.v1, .topic): "/message/topic"
        case (.v1, .condition): "/message/condition"
        }
    }
}

extension Target.Kind {
    /// The field of a send that names such a target.
    fileprivate var fieldName: String {
        switch self {
        case .token, .tokens, .installation, .installations, .topic, .condition: self.rawValue
        case .group: "device_group"
        }
    }
}

extension SendExplanation {
    var json: ByteBuffer {
        var writer = JSONWriter(reservingCapacity: 4_096)
        writer.beginObject()
        writer.member("upstream", self.upstream.rawValue)
        writer.member("request_count", self.requestCount)
        writer.beginArray("requests")
        for request in self.requests { writer.write(request) }
        writer.endArray()
        writer.beginObject("payload")
        writer.member("bytes", self.payloadBytes)
        writer.member("limit", self.target.maxPayloadBytes)
        writer.endObject()
        writer.beginArray("fields")
        for field in self.fields { writer.write(field) }
        writer.endArray()
        writer.beginArray("warnings")
        for warning in self.warnings {
            writer.beginObject()
            writer.member("pointer", warning.pointer)
            writer.member("detail", warning.detail)
            writer.endObject()
        }
        writer.endArray()
        if let refusal = self.refusal { writer.write(refusal) }
        writer.key("limits")
        writer.write(self.limits)
        writer.endObject()
        return writer.finish()
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ request: Message.Request) {
        self.beginObject()
        self.member("method", request.method)
        self.member("url", request.url)
        self.beginObject("headers")
        for field in request.fields {
            self.key(field.name)
            self.string(field.value)
        }
        self.endObject()
        self.key("body")
        self.encoded(request.body)
        self.endObject()
    }

    fileprivate mutating func write(_ field: SendExplanation.FieldTrace) {
        self.beginObject()
        self.member("pointer", field.pointer)
        self.member("becomes", field.becomes)
        self.endObject()
    }

    fileprivate mutating func write(_ refusal: Refusal) {
        self.beginObject("refused")
        self.member("code", refusal.code.rawValue)
        self.member("detail", refusal.detail ?? refusal.code.explanation)
        if let field = refusal.fields.first { self.member("pointer", field.path) }
        self.endObject()
    }

    fileprivate mutating func write(_ limits: LimitStatus) {
        self.beginObject()
        self.beginArray("tenant")
        for quota in limits.tenant { self.write(quota, scope: .tenant) }
        self.endArray()
        self.beginArray("targets")
        for entries in limits.recipients {
            self.beginArray()
            for entry in entries { self.write(entry.quota, scope: entry.scope) }
            self.endArray()
        }
        self.endArray()
        self.endObject()
    }

    private mutating func write(_ quota: QuotaStatus, scope: LimitScope) {
        self.beginObject()
        self.member("scope", scope.rawValue)
        self.member("rate", quota.policy.rate)
        self.member("per_s", quota.policy.periodSeconds)
        self.member("burst", quota.policy.burst)
        self.member("remaining", quota.remaining)
        self.member("reset_s", quota.resetSeconds)
        self.endObject()
    }
}

extension SendExplanation {
    /// The place of one field of a message in the upstream's request.
    struct FieldTrace {
        /// The field as the caller wrote it (RFC 6901).
        var pointer: String
        /// The members of the upstream's body that carry the field. Empty if the field is not sent.
        var becomes: [String]

        /// Traces each field of a message to members of the first recipient's body, in the order of the REST contract.
        ///
        /// Lists only members that the body has, each under its own field.
        static func all(of message: Message, in body: ByteBuffer, of kind: UpstreamKind) -> [FieldTrace] {
            var leaves: [String] = []
            if let root = (try? JSONDocument(parsing: body))?.root {
                Self.gather(root, at: JSONPointer(), into: &leaves)
            }
            var ofPlatforms: [String] = []
            if let content = message.platforms?.content { Self.gather(content, at: JSONPointer(), into: &ofPlatforms) }
            let platformLeaves = Set(ofPlatforms.map { "/message\($0)" })
            let isSilent = leaves.contains(Self.pushType)
            var members: [String: [String]] = [:]
            for leaf in leaves {
                let field: String? =
                    switch kind {
                    case .legacy: leaf == "/time_to_live" ? "/ttl" : leaf
                    case .v1 where platformLeaves.contains(leaf): String(leaf.dropFirst("/message".count))
                    // In a silent push, `apns-priority` comes from `content_available`, otherwise from `priority`.
                    case .v1:
                        leaf == "/message/apns/headers/apns-priority" && isSilent
                            ? "/content_available" : Self.fieldsOfV1[leaf]
                    }
                if let field { members[field, default: []].append(leaf) }
            }
            let traces = Self.fields(of: message).map { FieldTrace(pointer: $0, becomes: members[$0] ?? []) }
            return traces
                + ofPlatforms.map { leaf in
                    let field = kind == .v1 ? leaf : Self.fieldsOfV1["/message\(leaf)"]
                    return FieldTrace(pointer: leaf, becomes: field.flatMap { members[$0] } ?? [])
                }
        }

        /// Collects the pointers of all members that are not objects. The caller's `data` counts as one member. A `null`
        /// only removes a member.
        private static func gather(_ value: JSONValue, at pointer: JSONPointer, into leaves: inout [String]) {
            guard !value.isNull else { return }
            guard let members = value.members, !Self.dataPointers.contains(pointer.description) else {
                leaves.append(pointer.description)
                return
            }
            for member in members {
                Self.gather(member.value, at: pointer.appending(member.key), into: &leaves)
            }
        }

        private static func fields(of message: Message) -> [String] {
            let notification = message.notification
            let isThere: KeyValuePairs = [
                "/notification/badge": notification?.badge != nil,
                "/notification/title_loc_args": notification?.titleLocArgs != nil,
                "/notification/body_loc_args": notification?.bodyLocArgs != nil,
                "/data": !message.data.isEmpty,
                "/priority": message.priority != nil,
                "/ttl": message.timeToLive != nil,
                "/collapse_key": message.collapseKey != nil,
                "/content_available": message.contentAvailable,
                "/mutable_content": message.mutableContent,
                "/restricted_package_name": message.restrictedPackageName != nil,
                "/dry_run": message.dryRun,
            ]
            let texts = notification?.texts.map { "/notification/\($0.key.rawValue)" } ?? []
            return texts + isThere.filter(\.value).map(\.key)
        }

        private static let dataPointers: Set<String> = ["/data", "/message/data"]
        /// The member that only a silent push has (TR-SILENT).
        private static let pushType = "/message/apns/headers/apns-push-type"

        /// The field that each member of a v1 body comes from.
        private static let fieldsOfV1: [String: String] = {
            let android = "/message/android"
            let aps = "/message/apns/payload/aps"
            var fields = [
                "/validate_only": "/dry_run",
                "/message/data": "/data",
                "\(android)/collapse_key": "/collapse_key",
                "\(android)/priority": "/priority",
                "\(android)/ttl": "/ttl",
                "\(android)/restricted_package_name": "/restricted_package_name",
                "\(android)/notification/channel_id": "/notification/android_channel_id",
                "/message/apns/headers/apns-expiration": "/ttl",
                "/message/apns/headers/apns-collapse-id": "/collapse_key",
                "/message/apns/headers/apns-priority": "/priority",
                Self.pushType: "/content_available",
                "\(aps)/alert/loc-key": "/notification/body_loc_key",
                "\(aps)/alert/loc-args": "/notification/body_loc_args",
                "\(aps)/alert/title-loc-key": "/notification/title_loc_key",
                "\(aps)/alert/title-loc-args": "/notification/title_loc_args",
                "\(aps)/badge": "/notification/badge",
                "\(aps)/sound": "/notification/sound",
                "\(aps)/category": "/notification/click_action",
                "\(aps)/content-available": "/content_available",
                "\(aps)/mutable-content": "/mutable_content",
                "/message/webpush/headers/TTL": "/ttl",
                "/message/webpush/headers/Urgency": "/priority",
                "/message/webpush/notification/icon": "/notification/icon",
                "/message/webpush/fcm_options/link": "/notification/click_action",
            ]
            for name in ["title", "body", "image"] { fields["/message/notification/\(name)"] = "/notification/\(name)" }
            for name in ["title", "subtitle", "body"] { fields["\(aps)/alert/\(name)"] = "/notification/\(name)" }
            for name in [
                "sound", "icon", "color", "tag", "click_action", "title_loc_key", "body_loc_key", "title_loc_args",
                "body_loc_args",
            ] {
                fields["\(android)/notification/\(name)"] = "/notification/\(name)"
            }
            return fields
        }()
    }
}

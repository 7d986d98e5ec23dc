import FCMModel
import GatewayCore
import NIOCore
import StrictJSON

/// Where one field of a message stands in the upstream's request.
package struct FieldTrace: Sendable, Hashable {
    /// The field as the caller wrote it (RFC 6901).
    package var pointer: String
    /// The members of the upstream's body that say it; none for a field that is not sent.
    package var becomes: [String]

    /// Traces the fields of a message.
    ///
    /// Only members that the body really has are told, each under the field that it comes from.
    ///
    /// - Parameters:
    ///   - message: what would be sent.
    ///   - body: what it becomes for its first recipient.
    ///   - kind: the protocol that the body is written in.
    /// - Returns: the fields that the message has, in the order of the REST contract.
    static func all(of message: Message, in body: ByteBuffer, of kind: UpstreamKind) -> [FieldTrace] {
        var leaves: [String] = []
        if let root = (try? JSONDocument(parsing: body))?.root {
            Self.gather(root, at: JSONPointer(), into: &leaves)
        }
        let isSilent = leaves.contains(Self.pushType)
        var members: [String: [String]] = [:]
        for leaf in leaves {
            let field: String? =
                switch kind {
                case .legacy: leaf == "/time_to_live" ? "/ttl" : leaf
                // The header says how urgent a push is, or else that it is a silent one.
                case .v1:
                    leaf == "/message/apns/headers/apns-priority" && isSilent
                        ? "/content_available" : Self.fieldsOfV1[leaf]
                }
            if let field { members[field, default: []].append(leaf) }
        }
        return Self.fields(of: message).map { FieldTrace(pointer: $0, becomes: members[$0] ?? []) }
    }

    /// Gathers the members that hold no further ones; the caller's own pairs count as one.
    private static func gather(_ value: JSONValue, at pointer: JSONPointer, into leaves: inout [String]) {
        guard let members = value.members, !Self.dataPointers.contains(pointer.description) else {
            leaves.append(pointer.description)
            return
        }
        for member in members {
            Self.gather(member.value, at: pointer.appending(member.key), into: &leaves)
        }
    }

    /// The fields that a message has.
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
    /// What only a silent push has (TR-SILENT).
    private static let pushType = "/message/apns/headers/apns-push-type"

    /// Which field each member of a v1 body comes from (TR-* of the translation page).
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

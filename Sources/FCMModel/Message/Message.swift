package import NIOCore
import StrictJSON

/// A message in the gateway's own form, read from any protocol and written to any protocol.
///
/// Decoders ensure that every present text is non-empty, data values are strings, and numbers are within their ranges.
package struct Message: Sendable, Hashable {
    /// The urgency of a message's delivery (T1 `priority`).
    package enum Priority: String, Sendable, Hashable, CaseIterable {
        case normal, high
    }

    /// The longest time, in seconds, that FCM keeps a message for an offline device: four weeks.
    package static let maxTimeToLive = 2_419_200

    package var notification: Notification?
    package var data: [DataEntry] = []
    package var priority: Priority?
    /// The seconds for which FCM may keep the message, 0 to ``maxTimeToLive``. `nil` means four weeks.
    package var timeToLive: Int?
    package var collapseKey: String?
    package var contentAvailable = false
    package var mutableContent = false
    package var restrictedPackageName: String?
    package var dryRun = false
    /// `nil` if the message is the same for all platforms.
    package var platforms: PlatformBlocks?

    /// The message of an HTTP v1 caller, for an upstream that also speaks v1 (V-FACADE). It is one JSON object without
    /// blanks and without the target. Members keep the caller's order and spelling of names and numbers.
    ///
    /// If present, only this object is sent. The properties above then hold only the options that limits and load
    /// shedding need.
    package var passThrough: ByteBuffer?

    package init() {}

    /// True if a user waits for the message. If the gateway can't serve all messages, urgent ones precede others.
    package var isUrgent: Bool { self.priority == .high || self.platforms?.isUrgent == true }

    /// True if a device shows only the newest of such messages.
    package var isCollapsible: Bool { self.collapseKey != nil || self.platforms?.isCollapsible == true }

    /// The payload's size in bytes by FCM's rules (L-SIZE): the sum of the UTF-8 lengths of keys and values of `data`
    /// and `notification`. Integers count as digits, and lists as compact JSON. Targets, options and JSON punctuation
    /// don't count. If platforms have their own data, the largest counts (V-SIZE).
    package var payloadBytes: Int {
        let dataBytes = self.data.reduce(0) { $0 + $1.payloadBytes }
        return (self.notification?.payloadBytes ?? 0) + max(dataBytes, self.platforms?.dataBytes ?? 0)
    }
}

/// One custom key of a message, with its value.
package struct DataEntry: Sendable, Hashable {
    /// The key. After validation, never empty or reserved.
    package var key: String
    package var value: String

    var payloadBytes: Int { self.key.utf8.count + self.value.utf8.count }

    package init(key: String, value: String) {
        self.key = key
        self.value = value
    }
}

/// The user-visible part of a message: the union of the platforms' predefined keys (T2a, T2b, T2c and `image`).
package struct Notification: Sendable, Hashable {
    /// Most notifications have few of the many keys. A short list is smaller than a property for each key.
    package private(set) var texts: [Text] = []
    /// The number on the app's icon, 0 to 2,147,483,647; 0 removes it.
    package var badge: Int?
    package var titleLocArgs: [String]?
    package var bodyLocArgs: [String]?

    package init() {}

    package var isEmpty: Bool {
        self.texts.isEmpty && self.badge == nil && self.titleLocArgs == nil && self.bodyLocArgs == nil
    }

    package subscript(key: NotificationKey) -> String? {
        get {
            // In place: `first(where:)` copies each text.
            for index in self.texts.indices where self.texts[index].key == key { return self.texts[index].value }
            return nil
        }
        set {
            if let index = self.texts.firstIndex(where: { $0.key == key }) {
                if let newValue { self.texts[index].value = newValue } else { self.texts.remove(at: index) }
            } else if let newValue {
                // Most have a title and a body.
                if self.texts.isEmpty { self.texts.reserveCapacity(2) }
                self.texts.append(Text(key: key, value: newValue))
            }
        }
    }

    func has(_ key: NotificationKey) -> Bool { self.texts.contains { $0.key == key } }

    package var payloadBytes: Int {
        var bytes = self.texts.reduce(0) { $0 + $1.key.rawValue.utf8.count + $1.value.utf8.count }
        if let badge = self.badge { bytes += "badge".utf8.count + String(badge).utf8.count }
        if let list = self.titleLocArgs { bytes += "title_loc_args".utf8.count + JSONWriter.byteCount(of: list) }
        if let list = self.bodyLocArgs { bytes += "body_loc_args".utf8.count + JSONWriter.byteCount(of: list) }
        return bytes
    }

    /// One text of a notification.
    package struct Text: Sendable, Hashable {
        package let key: NotificationKey
        package fileprivate(set) var value: String
    }
}

/// The notification keys whose value is a plain text. Raw values are the names on the wire in both REST and legacy.
package enum NotificationKey: String, Sendable, Hashable, CaseIterable {
    case title, body, image, subtitle, sound, icon, color, tag
    case clickAction = "click_action"
    case androidChannelID = "android_channel_id"
    case titleLocKey = "title_loc_key"
    case bodyLocKey = "body_loc_key"
}

extension JSONWriter {
    mutating func data(of message: Message) {
        guard !message.data.isEmpty else { return }
        self.beginObject("data")
        for entry in message.data {
            self.key(entry.key)
            self.string(entry.value)
        }
        self.endObject()
    }
}

extension Message {
    /// A request that carries a message to an upstream, by either protocol. Stars replace the credential.
    package struct Request: Sendable {
        package var method: String
        package var url: String
        /// The header fields, except those that belong to the connection or to a trace.
        package var fields: [(name: String, value: String)]
        package var body: ByteBuffer

        package init(method: String, url: String, fields: [(name: String, value: String)], body: ByteBuffer) {
            self.method = method
            self.url = url
            self.fields = fields
            self.body = body
        }
    }
}

import NIOCore
import StrictJSON

extension Message {
    /// The payload's size in bytes as FCM counts it (L-SIZE): UTF-8 lengths of keys and values of `data` and
    /// `notification`, integers as digits, lists as compact JSON; targets, options and JSON punctuation are free.
    package var payloadBytes: Int {
        var bytes = 0
        for entry in self.data {
            bytes += entry.key.utf8.count + entry.value.utf8.count
        }
        return bytes + (self.notification?.payloadBytes ?? 0)
    }
}

extension Notification {
    /// The notification's share of the payload in bytes (L-SIZE).
    package var payloadBytes: Int {
        var bytes = 0
        for text in self.texts {
            bytes += text.key.rawValue.utf8.count + text.value.utf8.count
        }
        if let badge = self.badge {
            bytes += "badge".utf8.count + String(badge).utf8.count
        }
        if let arguments = self.titleLocArgs {
            bytes += "title_loc_args".utf8.count + JSONWriter.byteCount(of: arguments)
        }
        if let arguments = self.bodyLocArgs {
            bytes += "body_loc_args".utf8.count + JSONWriter.byteCount(of: arguments)
        }
        return bytes
    }

    /// A list of strings as JSON without blanks, the form in which legacy FCM takes `*_loc_args`.
    static func compactJSON(_ strings: [String]) -> String {
        var writer = JSONWriter()
        writer.beginArray()
        for string in strings {
            writer.string(string)
        }
        writer.endArray()
        return String(buffer: writer.finish())
    }
}

import StrictJSON

/// Rules on single values that every surface shares.
package enum ValueRules {
    package static let maxBadge = 2_147_483_647

    /// True for `#` and six hexadecimal digits (L-COLOR).
    package static func isColor(_ text: String) -> Bool {
        var digits = text.utf8.makeIterator()
        guard text.utf8.count == 7, digits.next() == UInt8(ascii: "#") else { return false }
        while let digit = digits.next() {
            guard digit.hexValue != nil else { return false }
        }
        return true
    }

    /// True if FCM refuses a key of `data` (L-RESERVED, L-EMPTYKEY). Such a key is empty, `from` or `message_type`, or
    /// starts with `google` or `gcm`.
    package static func isRefusedDataKey(_ key: String) -> Bool {
        // The key is compared by bytes. A combining mark after the prefix changes the prefix's last character, but FCM
        // still sees the prefix.
        let bytes = key.utf8
        guard let first = bytes.first else { return true }
        return switch first {
        case UInt8(ascii: "f"), UInt8(ascii: "m"): ["from", "message_type"].contains(key.protocolWord)
        case UInt8(ascii: "g"): bytes.starts(with: "google".utf8) || bytes.starts(with: "gcm".utf8)
        default: false
        }
    }

    package static func isTimeToLive(_ seconds: Int) -> Bool {
        (0...Message.maxTimeToLive).contains(seconds)
    }

    /// Returns the badge in a text of decimal digits. Returns `nil` for any other text, and for a number that is too
    /// large (L-BADGE).
    package static func badge(fromDigits text: String) -> Int? {
        // No message holds a longer text.
        guard text.utf8.count <= 4_096 else { return nil }
        var number = 0
        let digits = text.utf8.span
        for index in digits.indices {
            let digit = Int(digits[index]) - Int(UInt8(ascii: "0"))
            guard (0...9).contains(digit) else { return nil }
            number = number * 10 + digit
            guard number <= Self.maxBadge else { return nil }
        }
        return text.isEmpty ? nil : number
    }

    /// True if browsers accept a text as an address: it starts with `https://`, in any letter case.
    static func isHTTPS(_ text: String) -> Bool {
        var bytes = text.utf8.makeIterator()
        return "https://".utf8
            .allSatisfy { expected in
                guard let byte = bytes.next() else { return false }
                return byte == expected || (byte.isLetter && byte | 0x20 == expected)
            }
    }

    /// A prefix for names of groups at FCM. The gateway adds it if a group's name could collide with another tenant's.
    /// Callers' names can't start with this prefix.
    package static let reservedGroupPrefix = "fcm-gateway/"

    /// The maximum number of bytes of a display name, or of an id that an operator sets.
    package static let maxLabelBytes = 512
    /// The maximum sizes of a device group's name and key, in bytes. PostgreSQL refuses an index entry of more than
    /// 2,704 bytes, including the tenant's id.
    package static let maxGroupNameBytes = 1_024
    package static let maxGroupKeyBytes = 2_048

    /// True for a valid name of a device group: not empty, without control characters and without the reserved prefix.
    package static func isGroupName(_ name: String) -> Bool {
        !name.isEmpty && !name.utf8.starts(with: Self.reservedGroupPrefix.utf8)
            && Self.isLabel(name, maxBytes: Self.maxGroupNameBytes)
    }

    package static func isGroupKey(_ key: String) -> Bool { Self.isLabel(key, maxBytes: Self.maxGroupKeyBytes) }

    /// True if a text may enter the store or a header: at most `maxBytes`, and no control characters.
    ///
    /// The rule applies to names, keys, tokens, labels and cursors, but not to a message's content.
    package static func isLabel(_ text: String, maxBytes: Int) -> Bool {
        text.utf8.count <= maxBytes && !Self.hasControls(text)
    }

    package static func hasControls(_ text: String) -> Bool {
        let bytes = text.utf8.span
        guard !bytes.isPlainText else { return false }
        for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F { return true }
        return false
    }
}

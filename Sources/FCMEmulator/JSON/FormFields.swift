/// Reads `application/x-www-form-urlencoded` text by the rules of P-DECODE; also used for query strings.
enum FormFields {
    struct Undecodable: Error, Equatable {
        let reason: String
    }

    static func read(_ bytes: [UInt8]) throws(Undecodable) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for segment in bytes.split(separator: UInt8(ascii: "&")) {
            let equals = segment.firstIndex(of: UInt8(ascii: "=")) ?? segment.endIndex
            let name = try Self.decode(segment[..<equals])
            let value = try Self.decode(segment[equals...].dropFirst())
            fields.append((name, value))
        }
        return fields
    }

    private static func decode(_ text: ArraySlice<UInt8>) throws(Undecodable) -> String {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"):
                decoded.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = Self.digit(rest.popFirst()), let low = Self.digit(rest.popFirst()) else {
                    throw Undecodable(reason: "broken percent escape")
                }
                decoded.append(high << 4 | low)
            default:
                decoded.append(byte)
            }
        }
        guard let result = String(validating: decoded, as: UTF8.self) else {
            throw Undecodable(reason: "bytes that are not UTF-8")
        }
        return result
    }

    private static func digit(_ byte: UInt8?) -> UInt8? {
        guard let byte else { return nil }
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): return byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): return byte - UInt8(ascii: "A") + 10
        default: return nil
        }
    }
}

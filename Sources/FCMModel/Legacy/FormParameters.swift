import NIOCore

/// The parameters of a form in the order of the text, decoded (P-DECODE).
struct FormParameters {
    /// One parameter; without `=` its value is empty.
    struct Parameter {
        let name: String
        let value: String
    }

    let all: [Parameter]

    /// Reads a form; `nil` for a broken percent escape or bytes that are not UTF-8, wherever they stand.
    init?(_ body: ByteBuffer) {
        var all: [Parameter] = []
        for segment in body.readableBytesView.split(separator: UInt8(ascii: "&")) {
            let end = segment.firstIndex(of: UInt8(ascii: "=")) ?? segment.endIndex
            let rest = segment[end...].dropFirst()
            guard let name = Self.decode(segment[..<end]), let value = Self.decode(rest) else { return nil }
            all.append(Parameter(name: name, value: value))
        }
        self.all = all
    }

    private static func decode(_ bytes: ByteBufferView) -> String? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "+"):
                decoded.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(Self.digit), let low = rest.next().flatMap(Self.digit) else {
                    return nil
                }
                decoded.append(high << 4 | low)
            default:
                decoded.append(byte)
            }
        }
        return String(validating: decoded, as: UTF8.self)
    }

    /// The value of a hexadecimal digit.
    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

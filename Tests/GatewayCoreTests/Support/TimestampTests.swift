import GatewayCore
import GatewayTestKit
import Testing

@Suite("Timestamp")
struct TimestampTests {
    @Test(
        "Timestamps are written in RFC 3339 form, truncated to milliseconds",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.000Z"), (999, "1970-01-01T00:00:00.000Z"),
            (1_000, "1970-01-01T00:00:00.001Z"), (999_999, "1970-01-01T00:00:00.999Z"),
            (1_772_366_400_000_000, "2026-03-01T12:00:00.000Z"), (1_772_366_400_001_000, "2026-03-01T12:00:00.001Z"),
            (1_772_366_400_123_456, "2026-03-01T12:00:00.123Z"), (1_772_366_399_999_999, "2026-03-01T11:59:59.999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000Z"), (253_402_300_799_999_000, "9999-12-31T23:59:59.999Z"),
            (-1, "1969-12-31T23:59:59.999Z"), (-1_000_000, "1969-12-31T23:59:59.000Z"),
        ] as [(Int64, String)]
    )
    func writing(microseconds: Int64, text: String) {
        #expect(Timestamp(microseconds: microseconds).rfc3339 == text)
    }

    @Test(
        "RFC 3339 texts are read with or without a fraction and with any offset",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-03-01T12:00:00Z", 1_772_366_400_000_000),
            ("2026-03-01T12:00:00.000Z", 1_772_366_400_000_000), ("2026-03-01T12:00:00.5Z", 1_772_366_400_500_000),
            ("2026-03-01T12:00:00.001Z", 1_772_366_400_001_000), ("2026-03-01T12:00:00.123456Z", 1_772_366_400_123_456),
            ("2026-03-01T14:00:00+02:00", 1_772_366_400_000_000),
            ("2026-03-01T06:30:00.25-05:30", 1_772_366_400_250_000),
            ("2026-03-01T12:00:00.1234567890123456789012Z", 1_772_366_400_123_456),
            ("2026-03-01t12:00:00z", 1_772_366_400_000_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000_000), ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
            ("2024-02-29T23:59:59-23:59", 1_709_337_539_000_000), ("1969-12-31T23:59:59.999Z", -1_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ] as [(String, Int64)]
    )
    func reading(text: String, microseconds: Int64) {
        #expect(Timestamp(rfc3339: text)?.microseconds == microseconds)
    }

    @Test(
        "Any other text is refused",
        arguments: [
            "", "now", "1772366400", "2026-03-01", "12:00:00Z", "2026-03-01T12:00:00", "2026-13-01T12:00:00Z",
            "2026-02-30T12:00:00Z", "2026-03-01T25:00:00Z", "2026-03-01T12:60:00Z", "2026-03-01T12:00Z",
            "2026-03-01T12:00:00Z and more", " 2026-03-01T12:00:00Z", "2026-03-01T12:00:00.Z", "26-03-01T12:00:00Z",
            "2026-03-01T12:00:60Z", "2026-00-01T12:00:00Z", "2026-03-00T12:00:00Z", "2025-02-29T12:00:00Z",
            "1900-02-29T12:00:00Z", "2026-04-31T12:00:00Z", "2026-03-01T12:00:00+24:00", "2026-03-01T12:00:00+02:60",
            "2026-03-01T12:00:00+0200", "2026-03-01T12:00:00+02", "2026-03-01 12:00:00Z", "2026-03-01T12:00:00,5Z",
            "+2026-03-01T12:00:00Z", "12026-03-01T12:00:00Z", "２026-03-01T12:00:00Z", "2026-03-01T12:00:00Z\u{301}",
        ]
    )
    func refusing(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test("A written timestamp parses to the same millisecond")
    func roundTrip() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let moment = Timestamp(
                microseconds: Int64.random(in: -1_000_000...4_102_444_800_000, using: &generator) * 1_000
            )
            #expect(Timestamp(rfc3339: moment.rfc3339) == moment)
        }
    }

    @Test(
        "Seconds and milliseconds are rounded down, before 1970 too",
        arguments: [
            (1_999_999, 1, 1_999), (0, 0, 0), (-1, -1, -1), (-1_000_000, -1, -1_000), (-1_000_001, -2, -1_001),
        ] as [(Int64, Int, Int64)]
    )
    func units(microseconds: Int64, seconds: Int, milliseconds: Int64) {
        let moment = Timestamp(microseconds: microseconds)
        #expect(moment.seconds == seconds)
        #expect(moment.milliseconds == milliseconds)
    }

    @Test("A timestamp advanced by a duration is later or earlier")
    func advanced() {
        let moment = Timestamp(microseconds: 5)
        #expect(moment.advanced(by: .seconds(2)).microseconds == 2_000_005)
        #expect(moment.advanced(by: .milliseconds(-3)).microseconds == -2_995)
        #expect(moment.advanced(by: .nanoseconds(1_999)).microseconds == 6)
        #expect(moment.advanced(by: .zero) == moment)
        #expect(moment < moment.advanced(by: .microseconds(1)))
    }

    @Test(
        "Whole nanoseconds of a duration",
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(1) / 2, 0), (.milliseconds(-5), -5_000_000),
            (.seconds(9), 9_000_000_000), (.seconds(10), 10_000_000_000), (.seconds(-10), -10_000_000_000),
            (.seconds(31_536_000) + .nanoseconds(7), 31_536_000_000_000_007),
            (.seconds(4_722), 4_722_000_000_000), (.seconds(4_723), 4_723_000_000_000),
            (.seconds(-10) - .nanoseconds(1) / 2, -10_000_000_000), (.seconds(Int64.max), .max),
            (.seconds(Int64.min), .min),
        ] as [(Duration, Int64)]
    )
    func nanoseconds(of duration: Duration, count: Int64) {
        #expect(duration.nanoseconds == count)
    }
}

@Suite("Settings")
struct DurationSettingTests {
    @Test(
        "A duration setting is exact to the nanosecond",
        arguments: [
            Duration.zero, .nanoseconds(1), .milliseconds(100), .seconds(20), .seconds(600),
            .seconds(86_400 * 365 * 100),
        ]
    )
    func exact(duration: Duration) {
        let setting = DurationSetting(.seconds(1))
        setting.change(to: duration)
        #expect(setting.current == duration)
        #expect(DurationSetting(duration).current == duration)
    }
}

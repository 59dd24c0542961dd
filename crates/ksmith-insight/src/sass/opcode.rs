//! What each opcode is for.

use serde::{Deserialize, Serialize};

/// The unit that multiplies matrices, by the instruction that drives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorClass {
    /// One warp, 16-bit and TF32 inputs; 8-bit floats run at 16-bit rate here.
    Hmma,
    /// One warp, integers.
    Imma,
    /// One warp, double precision.
    Dmma,
    /// A warp group, 16-bit and TF32 inputs (Hopper).
    Hgmma,
    /// A warp group, 8-bit floats (Hopper).
    Qgmma,
    /// A warp group, integers (Hopper).
    Igmma,
    /// Tensor memory (Blackwell data centre).
    Utcmma,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Class {
    GlobalLoad,
    GlobalStore,
    LocalLoad,
    LocalStore,
    SharedLoad,
    SharedStore,
    /// Global to shared without registers (`cp.async`).
    AsyncCopy,
    /// Bulk copies and TMA.
    BulkCopy,
    AsyncWait,
    Tensor(TensorClass),
    /// Waits of a warp group for its matrix operations.
    TensorWait,
    Barrier,
    /// Operations on an mbarrier.
    Mbarrier,
    Fence,
    Atomic,
    Double,
    Float,
    Special,
    Convert,
    /// Integer and address arithmetic.
    Integer,
    Shuffle,
    Call,
    Control,
    /// Moves, constants, predicates, special registers.
    Move,
    Unknown,
}

/// The class of an opcode with its suffixes.
pub(super) fn classify(opcode: &str) -> Class {
    let base = opcode.split('.').next().unwrap_or(opcode);
    match base {
        "LDG" | "LD" => Class::GlobalLoad,
        "STG" | "ST" => Class::GlobalStore,
        "LDL" => Class::LocalLoad,
        "STL" => Class::LocalStore,
        "LDS" | "LDSM" => Class::SharedLoad,
        "STS" | "STSM" => Class::SharedStore,
        "LDGSTS" => Class::AsyncCopy,
        "UTMALDG" | "UTMASTG" | "UTMAREDG" | "UTMAPF" | "UBLKCP" | "UBLKPF" | "UBLKRED" => Class::BulkCopy,
        "LDGDEPBAR" | "DEPBAR" | "UTMACMDFLUSH" | "ACQBULK" | "PREEXIT" | "ARRIVES" => Class::AsyncWait,
        "HMMA" => Class::Tensor(TensorClass::Hmma),
        "IMMA" | "BMMA" => Class::Tensor(TensorClass::Imma),
        "DMMA" => Class::Tensor(TensorClass::Dmma),
        "HGMMA" => Class::Tensor(TensorClass::Hgmma),
        "QGMMA" => Class::Tensor(TensorClass::Qgmma),
        "IGMMA" | "BGMMA" => Class::Tensor(TensorClass::Igmma),
        "WARPGROUP" | "USETMAXREG" | "WARPGROUPSET" | "UTCBAR" | "LDTM" | "STTM" | "UTCATOMSWS" | "UTCCP"
        | "UTCSHIFT" => Class::TensorWait,
        "BAR" | "UCGABAR_ARV" | "UCGABAR_WAIT" | "CGABAR_ARV" | "CGABAR_WAIT" | "B2R" | "R2B" => {
            Class::Barrier
        }
        "SYNCS" => Class::Mbarrier,
        "MEMBAR" | "ERRBAR" | "CCTL" | "CCTLL" | "FENCE" | "UFENCE" => Class::Fence,
        "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" | "REDAS" => Class::Atomic,
        "DFMA" | "DADD" | "DMUL" | "DSETP" | "DMNMX" => Class::Double,
        "FFMA" | "FADD" | "FMUL" | "FMNMX" | "FMNMX3" | "FSETP" | "FSET" | "FSEL" | "FSWZADD" | "FCHK"
        | "FFMA2" | "FADD2" | "FMUL2" | "HFMA2" | "HADD2" | "HMUL2" | "HMNMX2" | "HSETP2" | "HSET2"
        | "FADD32I" | "FMUL32I" | "FFMA32I" | "FRND" | "FHADD" | "FHFMA" => Class::Float,
        "MUFU" | "RRO" => Class::Special,
        "F2F" | "F2FP" | "F2I" | "I2F" | "I2FP" | "I2IP" | "F2IP" | "I2I" | "F2IL" => Class::Convert,
        "IMAD" | "IADD3" | "IADD" | "LEA" | "SHF" | "LOP3" | "LOP" | "VIADD" | "ISETP" | "IMNMX"
        | "VIMNMX" | "VIMNMX3" | "IABS" | "POPC" | "FLO" | "BREV" | "BMSK" | "SGXT" | "IDP" | "IDP4A"
        | "SHL" | "SHR" | "ISCADD" | "XMAD" | "VIADDMNMX" | "VABSDIFF" | "VABSDIFF4" | "IADD2" | "ICMP"
        | "IMUL" | "VIMNMX16X2" | "IMNMX3" | "VHMNMX" => Class::Integer,
        "UIADD3" | "UIMAD" | "ULEA" | "USHF" | "ULOP3" | "UISETP" | "UIMNMX" | "UPOPC" | "UFLO" | "UBREV"
        | "UBMSK" | "USGXT" | "UVIADD" | "UVIMNMX" | "ULOP" | "UIADD" | "USHL" | "USHR" | "UIABS" => {
            Class::Integer
        }
        "SHFL" | "REDUX" | "CREDUX" | "VOTE" | "VOTEU" | "MATCH" | "ELECT" | "MOVM" => Class::Shuffle,
        "CALL" => Class::Call,
        "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "EXIT" | "RET" | "BSSY" | "BSYNC" | "BREAK" | "WARPSYNC"
        | "NANOSLEEP" | "YIELD" | "KILL" | "BPT" | "BMOV" | "RPCMOV" | "WARPSYNCALL" | "ENDCOLLECTIVE"
        | "PMTRIG" => Class::Control,
        "MOV" | "MOV32I" | "UMOV" | "PRMT" | "UPRMT" | "SEL" | "USEL" | "CS2R" | "CS2UR" | "S2R" | "S2UR"
        | "R2UR" | "UR2R" | "LDC" | "LDCU" | "ULDC" | "NOP" | "PLOP3" | "UPLOP3" | "P2R" | "R2P"
        | "UP2UR" | "UR2UP" | "PSETP" | "PSET" | "LEPC" | "GETLMEMBASE" | "SETCTAID" | "CSMTEST" | "QSPC"
        | "MAPA" | "UMAPA" | "UCLEA" | "UGETNEXTWORKID" | "UVIRTCOUNT" | "FSETPMOV" | "SETLMEMBASE"
        | "UF2FP" => Class::Move,
        _ if base.starts_with("UTC") && base.contains("MMA") => Class::Tensor(TensorClass::Utcmma),
        // Blackwell adds a uniform float unit; its names are those above with a `U`.
        _ if base.starts_with('U') && !matches!(classify_uniform(base), Class::Unknown) => {
            classify_uniform(base)
        }
        _ => Class::Unknown,
    }
}

fn classify_uniform(base: &str) -> Class {
    match base.get(1..) {
        Some(rest) if !rest.starts_with('U') && !rest.starts_with("TC") => match classify(rest) {
            Class::Float => Class::Float,
            Class::Integer => Class::Integer,
            Class::Convert => Class::Convert,
            _ => Class::Unknown,
        },
        _ => Class::Unknown,
    }
}

/// Bits that one thread moves with a memory instruction; 32 without a suffix.
pub(super) fn access_bits(opcode: &str) -> u32 {
    for suffix in opcode.split('.').skip(1) {
        match suffix {
            "U8" | "S8" => return 8,
            "U16" | "S16" => return 16,
            "64" => return 64,
            "128" => return 128,
            "256" => return 256,
            _ => {}
        }
    }
    32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_classed_by_what_they_do() {
        let cases = [
            ("LDG.E.128.CONSTANT", Class::GlobalLoad),
            ("LDGSTS.E.BYPASS.128", Class::AsyncCopy),
            ("UTMALDG.2D", Class::BulkCopy),
            ("HGMMA.64x8x16.F32.BF16", Class::Tensor(TensorClass::Hgmma)),
            ("HMMA.16816.F32.BF16", Class::Tensor(TensorClass::Hmma)),
            ("UTCHMMA", Class::Tensor(TensorClass::Utcmma)),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT", Class::Mbarrier),
            ("MUFU.EX2", Class::Special),
            ("UFADD", Class::Float),
            ("QWERTY.E", Class::Unknown),
            ("U", Class::Unknown),
        ];
        for (opcode, class) in cases {
            assert_eq!(classify(opcode), class, "{opcode}");
        }
    }

    #[test]
    fn widths_come_from_suffixes() {
        assert_eq!(access_bits("LDG.E"), 32);
        assert_eq!(access_bits("LDG.E.U16.CONSTANT"), 16);
        assert_eq!(access_bits("STG.E.EF.128"), 128);
    }
}

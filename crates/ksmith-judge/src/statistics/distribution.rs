//! Quantiles of the normal, Student's and the fair binomial distribution. The only file that knows `statrs`.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The value below which a standard normal variable falls with probability `p`.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(0.0, 1.0))
}

/// The value below which Student's t with `freedom` degrees falls with probability `p`; infinite without any.
pub(crate) fn student_quantile(p: f64, freedom: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(student) if p > 0.0 && p < 1.0 => student.inverse_cdf(p),
        Ok(_) | Err(_) => f64::INFINITY,
    }
}

/// The largest rank `k` (from 1) whose order statistic bounds the median from below at error `alpha`, exactly:
/// P(Bin(n, 1/2) < k) <= alpha. `None` where even the smallest of `n` samples does not.
///
/// Conover, Practical Nonparametric Statistics, section 3.2. The upper bound has rank `n + 1 - k` by symmetry.
pub(crate) fn sign_rank(n: usize, alpha: f64) -> Option<usize> {
    let mut log_mass = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut rank = 0;
    while rank < n {
        below += log_mass.exp();
        if below > alpha {
            break;
        }
        log_mass += (((n - rank) as f64) / ((rank + 1) as f64)).ln();
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        assert!((normal_quantile(0.99) - 2.326_348).abs() < 1e-5);
        assert!((student_quantile(0.99, 4) - 3.746_947).abs() < 1e-4);
        assert!((student_quantile(0.995, 9) - 3.249_836).abs() < 1e-4);
        assert!(student_quantile(0.99, 0).is_infinite());
    }

    #[test]
    fn sign_ranks_match_published_tables() {
        // Conover, table A3: P(Bin(10, 1/2) <= 1) = 0.0107, P(Bin(20, 1/2) <= 4) = 0.0059, P(.. <= 5) = 0.0207.
        assert_eq!(sign_rank(10, 0.0108), Some(2));
        assert_eq!(sign_rank(10, 0.0107), Some(1));
        assert_eq!(sign_rank(20, 0.01), Some(5));
        assert_eq!(sign_rank(6, 0.01), None);
        assert_eq!(sign_rank(7, 0.01), Some(1));
        assert_eq!(sign_rank(0, 0.01), None);
        // Far beyond the range in which 2^-n is a normal double.
        let rank = sign_rank(4000, 0.01).unwrap() as f64;
        assert!((rank - (2000.0 - 2.326 * 1000.0_f64.sqrt())).abs() < 2.0);
    }
}
